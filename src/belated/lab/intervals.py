"""Confidence intervals of means over seeds."""

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
    quantile = T_95[n - 2] if n - 2 < len(T_95) else 1.96 * (1 + 1.25 / (n - 1))
    return np.asarray(quantile * values.std(axis=0, ddof=1) / np.sqrt(n))
