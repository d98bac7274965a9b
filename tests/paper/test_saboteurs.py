"""The saboteurs do what their names say, and nothing else."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from belated import cli, kernels, lab
from belated.errors import InvalidInput
from belated.lab.algorithms import setting_of
from belated.paper import CLAIMS, ClaimKind, Effort
from belated.paper.saboteurs import SABOTEURS
from belated.tunings import Exp3, Shadow, Simple, Tsallis
from tests.paper.red import ALL, RED

LATE = lab.Problem(lab.Bernoulli(gap=0.4), lab.Geometric(8), 4, 300)
AT_ONCE = lab.Problem(lab.Bernoulli(gap=0.4), lab.NoDelay(), 4, 300)


def effort(name: str) -> Effort:
    return Effort(saboteur=SABOTEURS[name])


def losses_of(problem: lab.Problem, seed: int) -> np.ndarray:
    return np.vstack(list(problem.loss_blocks(seed, problem.draw_delays(seed))))


def test_the_worst_arm_loses_what_the_worst_arm_loses() -> None:
    totals = losses_of(LATE, 3).sum(axis=0)
    assert effort("worst-arm").play(Simple(), LATE, range(3, 4)).expected[0, -1] == totals.max() - totals.min()


def test_uniform_loses_the_mean() -> None:
    totals = losses_of(LATE, 3).sum(axis=0)
    lost = effort("uniform").play(Simple(), LATE, range(3, 4)).expected[0, -1]
    assert lost == pytest.approx(totals.mean() - totals.min())


@pytest.mark.parametrize("name", ["worst-arm", "uniform"])
@pytest.mark.parametrize("rows", [1, 7, 300])
def test_estimates_of_the_unmoved_are_sums_of_loss_by_probability(name: str, rows: int) -> None:
    delays, losses = LATE.draw_delays(3), losses_of(LATE, 3)
    game = effort(name).game(Simple(), LATE, delays, 3)
    for start in range(0, 300, rows):
        game.play(losses[start : start + rows])
    expected = np.zeros(4)
    for t in range(300):
        if t + delays[t] < 300:
            expected[game.arms[t]] += losses[t, game.arms[t]] / game.policy[kernels.X, game.arms[t]]
    assert game.policy[kernels.LOSSES] == pytest.approx(expected)


def test_the_latest_probability_is_right_without_delays_and_wrong_with_them() -> None:
    for problem, is_same in ((AT_ONCE, True), (LATE, False)):
        right, wrong = (e.play(Simple(), problem, range(2)).expected for e in (Effort(), effort("latest-probability")))
        assert (right == wrong).all() == is_same


def test_the_latest_probability_is_that_of_the_round_of_arrival() -> None:
    delays, losses = LATE.draw_delays(5), losses_of(LATE, 5)
    game, expected = effort("latest-probability").game(Simple(), LATE, delays, 5), np.zeros(4)
    for t in range(300):
        game.play(losses[t : t + 1])
        for s in np.flatnonzero(np.arange(t + 1) + delays[: t + 1] == t):
            expected[game.arms[s]] += losses[s, game.arms[s]] / game.policy[kernels.X, game.arms[s]]
        assert game.policy[kernels.LOSSES] == pytest.approx(expected)


def test_ignoring_delays_is_tsallis_inf_and_leaves_other_systems_alone() -> None:
    blind = effort("ignores-delays").play(Simple(), LATE, range(2)).expected
    assert (blind == lab.play(Tsallis(), LATE, range(2), checkpoints=[300]).expected).all()
    for tuning in (Exp3(0.01), Shadow()):
        assert SABOTEURS["ignores-delays"].replace(tuning, setting_of(LATE, 0)) is tuning


def test_a_wrong_saboteur_gets_the_nearest_suggested() -> None:
    with pytest.raises(InvalidInput, match=r"unknown saboteur 'worst'\. Did you mean worst-arm"):
        CliRunner().invoke(cli.app, ["paper", "--saboteur", "worst"], catch_exceptions=False)


def test_the_documents_have_the_table_of_the_test() -> None:
    text = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|((?: (?:red|·) \|){4})$", text, re.MULTILINE)
    marks = {claim: dict(zip(RED, cells.replace("|", " ").split(), strict=True)) for claim, cells in rows}
    assert tuple(RED) == tuple(SABOTEURS)
    assert marks == {claim: {name: "red" if claim in RED[name] else "·" for name in RED} for claim in ALL}


def test_every_judged_claim_has_a_saboteur() -> None:
    judged = {claim.name for claim in CLAIMS if claim.kind is not ClaimKind.EXPERIMENT}
    assert judged == set(ALL) == {claim for red in RED.values() for claim in red}
