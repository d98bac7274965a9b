"""The comparisons that the documents name say what the documents say."""

from pathlib import Path

from belated import lab

EXAMPLES = Path(__file__).parents[3] / "examples"


def regrets(name: str) -> dict[str, float]:
    results = lab.compare(EXAMPLES / f"{name}.toml", workers=2)
    return {row.algorithm.name: row.regret for row in results.rows}


def assert_ours_are_good(regret: dict[str, float]) -> None:
    """The default is near the best of all, and the shadow near the best of the published ones."""
    assert regret["means"] < 1.2 * min(regret.values())
    assert regret["shadow"] < 1.2 * min(value for name, value in regret.items() if name != "means")


def test_unbalanced() -> None:
    regret = regrets("unbalanced")
    assert regret["zs20-simple"] > 4 * regret["zs20-advanced"]
    assert_ours_are_good(regret)


def test_wave() -> None:
    regret = regrets("wave")
    assert regret["tsallis-inf"] > 3 * max(regret["zs20-simple"], regret["zs20-advanced"])
    assert_ours_are_good(regret)


def test_benign() -> None:
    regret = regrets("benign")
    assert 1.4 * regret["tsallis-inf"] < min(regret["zs20-simple"], regret["zs20-advanced"])
    assert_ours_are_good(regret)


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == {"unbalanced", "wave", "benign"}
