"""Writes a decision log for `belated replay`.

It has two weeks of three layouts. Conversions come hours to days later, and some never.

python examples/make_log.py decisions.csv
belated replay decisions.csv --reward
"""

import csv
import random
import sys
from datetime import UTC, datetime, timedelta

RATES = {"wide": 0.10, "narrow": 0.12, "calm": 0.20}  # how often a visitor converts
CHOSEN = {"wide": 0.5, "narrow": 0.3, "calm": 0.2}  # how often the old system showed each


def main(path: str, visitors: int = 5_000) -> None:
    """One row for each visitor."""
    draw, now = random.Random(1), datetime(2026, 1, 1, tzinfo=UTC)
    with open(path, "w", newline="") as file:  # noqa: PTH123  (an example)
        writer = csv.writer(file)
        writer.writerow(["time", "arm", "outcome", "outcome_time", "probability"])
        for _ in range(visitors):
            now += timedelta(seconds=draw.expovariate(visitors / (14 * 86400)))
            arm = draw.choices(list(CHOSEN), list(CHOSEN.values()))[0]
            converts = draw.random() < RATES[arm]
            known = now + timedelta(hours=draw.paretovariate(1.2) if converts else 48)  # or given up after two days
            is_lost = draw.random() < 0.02
            outcome = ["", ""] if is_lost else [int(converts), known.isoformat()]
            writer.writerow([now.isoformat(), arm, *outcome, CHOSEN[arm]])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "decisions.csv")
