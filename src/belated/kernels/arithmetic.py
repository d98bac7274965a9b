"""exp, minima and sums that vectorise and give the same bits on every machine."""

import math
from struct import Struct

from belated.arrays import Floats
from belated.kernels.compiling import compiled
from belated.kernels.native import bitcast

FLOAT, BITS, WORD = Struct("d"), Struct("q"), Struct("Q")


@bitcast("int64", "float64")
def float_of(bits: int) -> float:
    """The float with these bits. Bits beyond the lowest 64 do not count."""
    number: float = FLOAT.unpack(WORD.pack(bits & 0xFFFF_FFFF_FFFF_FFFF))[0]
    return number


@bitcast("float64", "int64")
def bits_of(number: float) -> int:
    """The bits of a float, as a signed integer."""
    bits: int = BITS.unpack(FLOAT.pack(number))[0]
    return bits


ROUNDER = 1.5 * 2.0**52  # adding it leaves the nearest integer in the lowest bits
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
INVERSE_LN2 = 1 / math.log(2)
TAYLOR = tuple(1 / math.factorial(power) for power in range(14))


@compiled
def exp(value: float) -> float:
    """e^value for |value| < 700, as exact as the C library's, in a form that vectorises (theirs does not)."""
    shifted = value * INVERSE_LN2 + ROUNDER
    power = shifted - ROUNDER
    rest = (value - power * LN2_HIGH) - power * LN2_LOW  # |rest| <= ln(2)/2
    series = TAYLOR[13]
    series = series * rest + TAYLOR[12]
    series = series * rest + TAYLOR[11]
    series = series * rest + TAYLOR[10]
    series = series * rest + TAYLOR[9]
    series = series * rest + TAYLOR[8]
    series = series * rest + TAYLOR[7]
    series = series * rest + TAYLOR[6]
    series = series * rest + TAYLOR[5]
    series = series * rest + TAYLOR[4]
    series = series * rest + TAYLOR[3]
    series = series * rest + TAYLOR[2]
    series = series * rest + 1.0
    series = series * rest + 1.0
    power_of_two: float = float_of((bits_of(shifted) << 52) + bits_of(1.0))
    return series * power_of_two


@compiled
def lowest(values: Floats) -> float:
    """The minimum of non-negative values. Their bits are ordered like the values, and integers vectorise."""
    least: int = bits_of(values[0])
    for i in range(values.shape[0]):
        least = min(least, bits_of(values[i]))
    minimum: float = float_of(least)
    return minimum


@compiled
def lane_total(values: Floats, start: int, stop: int) -> float:
    """The sum of values[start:stop] in four lanes."""
    whole = stop - (stop - start) % 4
    s0 = s1 = s2 = s3 = 0.0
    for i in range(start, whole, 4):
        s0 += values[i]
        s1 += values[i + 1]
        s2 += values[i + 2]
        s3 += values[i + 3]
    for i in range(whole, stop):
        s0 += values[i]
    return (s0 + s1) + (s2 + s3)


@compiled
def total(values: Floats) -> float:
    """The sum in four lanes, a thousand values at a time. Fast, exact for a million, and the same everywhere."""
    result = 0.0
    for start in range(0, values.shape[0], 1024):
        result += lane_total(values, start, min(start + 1024, values.shape[0]))
    return result
