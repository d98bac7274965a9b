"""The README's example: three layouts, outcomes that come some twenty visitors later."""

import random

import belated

learner = belated.FTRL(3)
waiting = []  # visitors whose outcome is not known yet
for _visitor in range(50_000):
    waiting.append(learner.ask())  # a Decision(round, arm, probability)
    if len(waiting) > 20:  # an outcome comes in: late, and out of order
        late = waiting.pop(random.randrange(5))
        converts = random.random() < [0.10, 0.12, 0.30][late.arm]
        learner.tell(late.round, loss=0.0 if converts else 1.0)
print(learner.distribution())  # the probability of each layout for the next visitor
print(learner.certificate())  # the expected number of conversions lost so far is provably no more
