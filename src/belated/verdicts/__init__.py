"""Which option is better, and how sure that is. Valid whenever you look (docs/theory/verdicts.md)."""

from belated.verdicts.evidence import Evidence
from belated.verdicts.verdict import Comparison, MeanInterval, Verdict

__all__ = ["Comparison", "Evidence", "MeanInterval", "Verdict"]
