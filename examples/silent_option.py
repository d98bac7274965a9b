"""One of three models fails silently. It answers, but its ratings never come. The best one still ends up in front."""

import random
from collections import Counter

import belated

GOOD = {"small": 0.55, "large": 0.75, "broken": 0.35}  # how often people like the answer, unknown to the learner
REPORTS = {"small": 0.9, "large": 0.9, "broken": 0.0}  # how often a rating arrives

generator = random.Random(7)
learner = belated.FTRL(list(GOOD), seed=7)
chosen: Counter[str] = Counter()
waiting: list[belated.Decision[str]] = []
for _request in range(10_000):
    waiting.append(learner.ask())
    chosen[waiting[-1].arm] += 1
    if len(waiting) > 50:  # ratings arrive late, if they arrive at all
        decision = waiting.pop(0)
        if generator.random() < REPORTS[decision.arm]:
            learner.tell(decision, reward=float(generator.random() < GOOD[decision.arm]))
        else:
            learner.give_up(decision)  # says nothing about the model
for name, count in chosen.most_common():
    print(f"{name:7} chosen {count / 10_000:4.0%}")
