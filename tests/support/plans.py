"""Brute force for belated.lab.plans: one decision at a time, and a look after every report."""

from collections import defaultdict
from itertools import chain

import numpy as np

from belated import FTRL
from belated.lab.plans.settings import TUNINGS, PlanSettings
from belated.verdicts import Evidence


def first_verdict(settings: PlanSettings, player: str, game: int) -> tuple[int, bool | None, float]:
    """Decisions until the first verdict while decisions go on, whether it is right, and what was lost."""
    k, best, tuning = settings.options, game % settings.options, TUNINGS[player]
    own, world = np.random.SeedSequence([settings.seed, game]).generate_state(2)
    generator = np.random.default_rng(int(world))
    provisional = 1.0 if settings.wait is not None and player == "means" else None
    learner = None if tuning is None else FTRL(k, tuning, seed=int(own), provisional=provisional)
    evidence, due, lost = Evidence.new(k, None if settings.wait is None else 1.0), defaultdict(list), 0.0
    for t in range(settings.most):
        if learner is None:
            x, arm = [1 / k] * k, int(generator.integers(k, size=1)[0])
        else:
            x, arm = learner.distribution().tolist(), learner.ask().arm
        succeeds = bool(generator.random() < settings.base_rate + settings.difference * (arm == best))
        evidence.decide(t, arm, x[arm], x)
        lost += 0.0 if arm == best else settings.difference
        comes = t + (settings.delay_decisions if succeeds else settings.wait_decisions)
        due[comes].append((not succeeds, t, arm, x[arm]))
        for loss, s, drawn, probability in sorted(due.pop(t, [])):
            evidence.report(s, drawn, probability, float(loss))
            if learner is not None:
                learner.tell(s + 1, float(loss))
            verdict = evidence.verdict(settings.confidence)
            if verdict.is_decided:
                return t + 1, verdict.leader == best, lost
    return settings.most, None, lost


def is_decided_after_a_wait(settings: PlanSettings, game: int, decisions: int) -> bool:
    """With equal shares, whether so many decisions give a verdict when all their outcomes are known.

    Until the last decision, outcomes are known as late as the settings say.
    """
    k, best = settings.options, game % settings.options
    generator = np.random.default_rng(int(np.random.SeedSequence([settings.seed, game]).generate_state(2)[1]))
    evidence, due = Evidence.new(k, None if settings.wait is None else 1.0), defaultdict(list)
    for t in range(decisions):
        arm = int(generator.integers(k, size=1)[0])
        fails = bool(generator.random() >= settings.base_rate + settings.difference * (arm == best))
        evidence.decide(t, arm, 1 / k, [1 / k] * k)
        due[t + (settings.wait_decisions if fails else settings.delay_decisions)].append((t, arm, float(fails)))
        for s, drawn, loss in due.pop(t, []):
            evidence.report(s, drawn, 1 / k, loss)
    for s, drawn, loss in chain(*due.values()):
        evidence.report(s, drawn, 1 / k, loss)
    return evidence.verdict(settings.confidence).is_decided
