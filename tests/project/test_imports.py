"""Importing a part loads only what the part needs."""

from tests.support.processes import run_python


def test_import_is_light() -> None:
    heavy = run_python("import belated, sys; print({'numpy', 'numba', 'belated.kernels'} & set(sys.modules))")
    assert heavy == "set()"
    assert run_python("import belated, sys; belated.errors.InvalidInput; print('numba' in sys.modules)") == "False"


def test_replay_is_light() -> None:
    heavy = run_python("import belated.replay, sys; print({'polars', 'matplotlib', 'rich'} & set(sys.modules))")
    assert heavy == "set()"


def test_the_service_does_not_load_the_lab() -> None:
    loaded = "import belated.serve.process.run, sys; print({'belated.lab', 'matplotlib', 'polars'} & set(sys.modules))"
    assert run_python(loaded) == "set()"
