"""`belated warm`."""

from belated import kernels
from belated.cli.application import app, console
from belated.progress import while_busy
from belated.warming import use_every_kernel


@app.command()
def warm() -> None:
    """Compile the kernels now and keep them on disk, so that later starts need not. For container images."""
    kernels.use_tier("compiled")
    with while_busy("compiling the kernels"):
        use_every_kernel()
        warm_lab()
    console.print(f"The compiled kernels are in {kernels.folder()}", soft_wrap=True)


def warm_lab() -> None:
    """Compile the kernels of whole games, if the lab is installed."""
    try:
        from belated.lab.games import play, worlds  # noqa: PLC0415  # without the lab, its libraries are missing
    except ModuleNotFoundError:
        return
    play.warm_up()
    worlds.warm_up()
