"""`belated warm`."""

from belated.cli.application import app, console
from belated.warming import fill_cache


@app.command()
def warm() -> None:
    """Compile the kernels now and keep them on disk, so that later starts need not. For container images."""
    console.print(f"The compiled kernels are in {fill_cache(warm_lab)}", soft_wrap=True, highlight=False)


def warm_lab() -> None:
    """Compile the kernels of whole games, if the lab is installed."""
    try:
        from belated.lab.games import play, worlds  # noqa: PLC0415  # without the lab, its libraries are missing
    except ModuleNotFoundError:
        return
    play.warm_up()
    worlds.warm_up()
