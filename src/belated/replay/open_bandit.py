"""Recognizes files of the Open Bandit Dataset.

Y. Saito, S. Aihara, M. Matsutani, Y. Narita. Open Bandit Dataset and Pipeline: Towards Realistic and Reproducible
Off-Policy Evaluation. NeurIPS Datasets and Benchmarks 2021.
"""

from belated.learner.outcomes import OutcomeRange

NAMES = {
    "time": "timestamp",
    "arm": "item_id",
    "outcome": "click",
    "outcome_time": "timestamp",  # the dataset does not say when a click came
    "probability": "propensity_score",
}
CLICKS = OutcomeRange(0, 1, better="higher")
REMARK = (
    "The log has the columns of the Open Bandit Dataset. It does not say when a click came, so every outcome counts as "
    "known at once."
)


def is_open_bandit(header: list[str]) -> bool:
    """Whether a header names what the dataset has, and nothing of a log in the usual format."""
    return {*NAMES.values(), "position"} <= set(header) and not set(NAMES) & set(header)
