"""Store a learner as JSON and restore it. It continues as if nothing had happened."""

import json

import belated

learner = belated.FTRL(4, seed=3)
open_decisions = learner.ask(100)

stored = json.dumps(learner.snapshot())
restored = belated.FTRL.restore(json.loads(stored))

for decision in reversed(open_decisions):  # feedback of decisions made before the interruption
    learner.tell(decision.round, 0.5)
    restored.tell(decision.round, 0.5)

assert [learner.ask() for _ in range(50)] == [restored.ask() for _ in range(50)]
print(f"{len(stored)} characters of JSON; both learners made the same 50 decisions after it")
