"""Confidence intervals of means over seeds."""

import math

import numpy as np
from numpy.typing import ArrayLike

from belated.arrays import Floats

T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)  # Student's, 1 to 10 degrees of freedom


def half_width(samples: ArrayLike) -> Floats:
    """Half the width of the 95% interval of the mean over the first axis, by Student's t. NaN for one sample."""
    values = np.asarray(samples, np.float64)
    n = len(values)
    if n == 1:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(_quantile(n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n))


def trimmed_half_width(samples: Floats, n_kept: int) -> float:
    """The same for a trimmed mean of `n_kept` samples (Yuen 1974). The others stand at the ends of those."""
    if n_kept == 1:
        return math.nan
    deviation = math.sqrt(float(samples.var(ddof=1)) * (len(samples) - 1) / (n_kept * (n_kept - 1)))
    return _quantile(n_kept - 1) * deviation


def _quantile(degrees: int) -> float:
    """Student's 0.975 quantile, right to four digits. The series in 1 / degrees is that of Fisher & Cornish (1960)."""
    if degrees <= len(T_95):
        return T_95[degrees - 1]
    return 1.959964 + 2.372271 / degrees + 2.822499 / degrees**2 + 2.555849 / degrees**3
