"""The argmin over the simplex, from the last solution.

    x = argmin of  <x, L> - 2 alpha sum_i sqrt(x_i) + beta sum_i x_i ln x_i            (ZS20, Algorithm 1)

With y_i = x_i^(-1/2) and v_i = ln y_i, the optimality conditions say that one number mu, the multiplier, satisfies

    alpha y_i + 2 beta v_i - (L_i - min L) = mu  for every arm,      sum_i x_i = 1,
    alpha <= mu <= alpha sqrt(k) + beta ln k.

The left side is an arm's `level`. Its slope in v_i is alpha y_i + 2 beta, and `gain` is the inverse of that.
"""

import math

import numpy as np

from belated.arrays import Floats
from belated.kernels.arithmetic import TAYLOR, bits_of, exp, float_of, lowest, total
from belated.kernels.compiling import compiled

V_MAX = 300.0  # x = e^-600: nothing smaller is ever drawn, and products of y stay finite
FAR = 1 / 32  # a longer Newton step is replaced by solving for the arm on its own
CLOSE = 1e-7  # Newton squares the error: after a step this short it is 1e-14
SMALLEST_RATE, LARGEST_RATE = 1e-15, 1e15  # of alpha + beta, and of each: beyond them products of y could overflow
SMALL_BETA = 1e-16  # relative to alpha; less entropy than this cannot be told from none
MAX_NEWTON = 8  # two or three do; a start so bad that it needs more is solved from nothing

SYNC = 64  # solves from one exact y = e^v to the next: their rounding stays below 1e-13
LANES = 32  # sums run in so many lanes side by side

# the rows of `policy`: the estimates and the solution, workspace, and what the certificates need (any_delays.py)
LOSSES, X, V, Y, GAIN, LEVEL, MOVE, OPEN = range(8)
ROWS = 8


@compiled
def _terms(v: float, y: float, relative_loss: float, alpha: float, beta: float) -> tuple[float, float, float]:
    """Probability, gain and level of an arm, with one division for both inverses."""
    slope = alpha * y + 2 * beta
    inverse = 1 / (y * slope)
    root = inverse * slope
    return root * root, inverse * y, alpha * y + 2 * beta * v - relative_loss


@compiled
def _evaluate(low: float, most: float, alpha: float, beta: float, policy: Floats) -> None:
    """Probability, gain and level of every arm at its v and y."""
    losses, x, v, y, gain, level = policy[LOSSES], policy[X], policy[V], policy[Y], policy[GAIN], policy[LEVEL]
    for i in range(x.shape[0]):
        x[i], gain[i], level[i] = _terms(v[i], y[i], min(losses[i] - low, most), alpha, beta)


@compiled
def _advance(low: float, most: float, alpha: float, beta: float, policy: Floats) -> None:
    """Take the planned moves, none longer than FAR, and evaluate. y e^move comes from its series, right to 1e-14."""
    losses, x, v, y, gain, level = policy[LOSSES], policy[X], policy[V], policy[Y], policy[GAIN], policy[LEVEL]
    move = policy[MOVE]
    for i in range(x.shape[0]):
        d = move[i]
        v[i] += d
        y[i] *= 1 + d * (1 + d * (TAYLOR[2] + d * (TAYLOR[3] + d * (TAYLOR[4] + d * (TAYLOR[5] + d * TAYLOR[6])))))
        x[i], gain[i], level[i] = _terms(v[i], y[i], min(losses[i] - low, most), alpha, beta)


@compiled
def _lane_sums(policy: Floats, lanes: Floats) -> None:
    """Add x, x gain and x gain level of every arm to the lanes, arm i to lane i mod LANES."""
    x, gain, level = policy[X], policy[GAIN], policy[LEVEL]
    masses, weights, moments = lanes[0], lanes[1], lanes[2]
    whole = x.shape[0] - x.shape[0] % LANES
    for i in range(0, whole, LANES):
        for j in range(LANES):
            w = x[i + j] * gain[i + j]
            masses[j] += x[i + j]
            weights[j] += w
            moments[j] += w * level[i + j]
    for j in range(x.shape[0] - whole):
        w = x[whole + j] * gain[whole + j]
        masses[j] += x[whole + j]
        weights[j] += w
        moments[j] += w * level[whole + j]


@compiled
def _multiplier(policy: Floats) -> float:
    """The mu of Newton's joint step. It linearises all levels and sum_i x_i = 1 at once, and eliminates the v_i.

    mu = (sum_i x_i gain_i level_i + (sum_i x_i - 1) / 2) / sum_i x_i gain_i
    """
    mass = weight = moment = 0.0
    if policy.shape[1] <= LANES:  # what the lanes would add up to, without them
        x, gain, level = policy[X], policy[GAIN], policy[LEVEL]
        for i in range(x.shape[0]):
            w = x[i] * gain[i]
            mass += x[i]
            weight += w
            moment += w * level[i]
    else:
        lanes = np.zeros((3, LANES))
        _lane_sums(policy, lanes)
        for j in range(LANES):
            mass += lanes[0, j]
            weight += lanes[1, j]
            moment += lanes[2, j]
    return (moment + 0.5 * (mass - 1.0)) / weight


@compiled
def _plan(mu: float, policy: Floats) -> float:
    """Plan Newton's step for every v_i towards the multiplier. Returns the longest."""
    v, gain, level, move = policy[V], policy[GAIN], policy[LEVEL], policy[MOVE]
    longest: int = bits_of(0.0)
    for i in range(v.shape[0]):
        move[i] = min(max(v[i] + (mu - level[i]) * gain[i], 0.0), V_MAX) - v[i]
        longest = max(longest, bits_of(abs(move[i])))
    length: float = float_of(longest)
    return length


@compiled
def _root(alpha: float, beta: float, height: float) -> float:
    """The v >= 0 with alpha e^v + 2 beta v = height >= alpha > 0.

    The left side is convex and increasing, so Newton from above falls to the root and cannot overshoot.
    """
    if beta == 0:
        return min(math.log(height / alpha), V_MAX)
    v = min(math.log(height / alpha), (height - alpha) / (2 * beta), V_MAX)
    while True:
        y = exp(v)
        step = (alpha * y + 2 * beta * v - height) / (alpha * y + 2 * beta)
        if not step > 1e-9:  # the next one would be below 1e-17
            return v - step if step > 0 else v
        v -= step


@compiled
def _place(i: int, low: float, most: float, mu: float, alpha: float, beta: float, policy: Floats) -> None:
    """Move one arm to its exact place for the multiplier mu."""
    relative_loss = min(policy[LOSSES, i] - low, most)
    v = _root(alpha, beta, max(alpha, relative_loss + mu))
    y = exp(v)
    policy[V, i], policy[Y, i] = v, y
    policy[X, i], policy[GAIN, i], policy[LEVEL, i] = _terms(v, y, relative_loss, alpha, beta)


@compiled
def _newton(low: float, most: float, alpha: float, beta: float, policy: Floats) -> bool:
    """Joint Newton iteration on all v_i and mu from the last solution. Returns whether it converged."""
    v, x, y, move = policy[V], policy[X], policy[Y], policy[MOVE]
    _evaluate(low, most, alpha, beta, policy)
    for _ in range(MAX_NEWTON):
        mu = _multiplier(policy)
        longest = _plan(mu, policy)
        if longest > FAR:  # feedback has just moved some arms: place them first, then step with all
            for i in range(v.shape[0]):
                if abs(move[i]) > FAR:
                    _place(i, low, most, mu, alpha, beta, policy)
            longest = _plan(_multiplier(policy), policy)
        if not longest <= FAR:
            return False
        if longest <= CLOSE:
            for i in range(v.shape[0]):
                v[i] += move[i]
                y[i] *= 1 + move[i] * (1 + move[i] / 2)  # e^move
                x[i] *= 1 - 2 * move[i] * (1 - move[i])  # e^(-2 move)
            return True
        _advance(low, most, alpha, beta, policy)
    return False


@compiled
def _from_nothing(low: float, most: float, alpha: float, beta: float, policy: Floats) -> None:
    """Newton on G(mu) = alpha (1 - S^(-1/2)) + beta ln S, S = sum_i x_i(mu), with exact x_i(mu).

    G decreases and is convex, and G(alpha) >= 0. From there the iteration climbs to the root and cannot overshoot.
    """
    x, gain = policy[X], policy[GAIN]
    top = alpha * math.sqrt(x.shape[0]) + beta * math.log(x.shape[0])
    mu = alpha
    while True:
        slope = 0.0
        for i in range(x.shape[0]):
            _place(i, low, most, mu, alpha, beta, policy)
            slope += 2 * x[i] * gain[i]
        mass = total(x)
        value = alpha * (1 - 1 / math.sqrt(mass)) + beta * math.log(mass)
        climb = min(mu + value / (slope * (0.5 * alpha / (mass * math.sqrt(mass)) + beta / mass)), top)
        if not climb - mu > 1e-6 * mu:
            return
        mu = climb


@compiled
def _softmax(low: float, beta: float, policy: Floats) -> None:
    """alpha = 0: x_i proportional to e^(-L_i / beta)."""
    losses, x, v, y = policy[LOSSES], policy[X], policy[V], policy[Y]
    for i in range(x.shape[0]):
        v[i] = min((losses[i] - low) / (2 * beta), V_MAX)
        y[i] = exp(v[i])
        x[i] = 1 / (y[i] * y[i])


@compiled
def argmin(policy: Floats, alpha: float, beta: float, solves: int) -> bool:
    """Write x = argmin <x, L> - 2 alpha sum sqrt(x) + beta sum x ln x into policy[X] (ZS20, Algorithm 1).

    Its sum is 1 up to rounding, which `normalise` removes. For alpha = 0 it may be any number.
    The iteration starts from policy[V], any values in [0, V_MAX]. Between solves y = e^v is kept up to date, which is
    faster but gathers rounding errors. So every SYNC-th solve computes it anew.
    Needs alpha + beta > 0 and losses >= 0. Returns whether it converged. Tests have found no case in which it does not.
    """
    v, y = policy[V], policy[Y]
    if solves % SYNC == 0:
        for i in range(v.shape[0]):
            y[i] = exp(v[i])
    low = lowest(policy[LOSSES])
    if beta <= SMALL_BETA * alpha:
        beta = 0.0
    if alpha == 0:
        _softmax(low, beta, policy)
        return True
    most = alpha * exp(V_MAX) + 2 * beta * V_MAX  # a larger loss cannot be told from this one, but could overflow
    if _newton(low, most, alpha, beta, policy):
        return True
    _from_nothing(low, most, alpha, beta, policy)
    return _newton(low, most, alpha, beta, policy)


@compiled
def potential(policy: Floats, alpha: float, beta: float) -> float:
    """Phi(L) = max over the simplex of -<x, L> - F(x), from what `argmin` has just left for the same rates.

    By the optimality conditions Phi + min L = mu + alpha sum_i sqrt(x_i), or for alpha = 0 beta ln sum_i x_i, x not yet
    normalised.
    """
    x, y, root = policy[X], policy[Y], policy[MOVE]
    for i in range(x.shape[0]):
        root[i] = x[i] * y[i]  # sqrt(x_i) = 1 / y_i
    mu = beta * math.log(total(x)) if alpha == 0 else alpha * lowest(y) + 2 * beta * lowest(policy[V])
    return mu + alpha * total(root) - lowest(policy[LOSSES])
