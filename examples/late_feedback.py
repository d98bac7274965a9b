"""The README's example. Three layouts, and outcomes that come some twenty visitors later."""

import random

import belated

rates = {"blue": 0.10, "green": 0.12, "red": 0.30}  # how often each layout converts, unknown to the learner
learner = belated.FTRL(["blue", "green", "red"])
waiting = []  # visitors without an outcome
for _visitor in range(50_000):
    waiting.append(learner.ask())  # a Decision(round, arm, probability)
    if len(waiting) > 20:  # an outcome arrives, late and out of order
        decision = waiting.pop(random.randrange(5))
        converts = random.random() < rates[decision.arm]
        learner.tell(decision, reward=1.0 if converts else 0.0)
print(dict(zip(rates, learner.distribution().tolist(), strict=True)))  # probabilities for the next visitor
print(learner.certificate())  # proven: on average, at most this many conversions are lost
print(learner.measured_certificate())  # the same, estimated from this run
