"""Groups of rounds of which none is reported before the last one is decided (docs/theory/lower-bound.md)."""

import numpy as np
from numpy.typing import NDArray

from belated.arrays import Integers
from belated.kernels.compiling import compiled

Tree = NDArray[np.int32]  # the root is 1, and the children of a node are twice its number and one more


@compiled
def groups(arrives: Integers) -> Integers:
    """Each round's group, from 0. Round s, from 0, is reported at the end of round arrives[s] < n.

    The rounds of a group are all outstanding at one moment. The largest group comes first. Of several, the earliest.
    One tree knows how many rounds are outstanding at each moment. The other knows the latest report of many rounds.
    """
    n = arrives.size
    leaves = 1
    while leaves < n + 1:
        leaves *= 2
    steps, highest = np.zeros(2 * leaves, np.int32), np.zeros(2 * leaves, np.int32)
    latest = np.full(2 * leaves, -1, np.int32)
    for s in range(n):
        steps[leaves + s] += 1
        steps[leaves + arrives[s] + 1] -= 1
        latest[leaves + s] = arrives[s]
    highest[leaves:] = steps[leaves:]
    for node in range(leaves - 1, 0, -1):
        steps[node] = steps[2 * node] + steps[2 * node + 1]
        highest[node] = max(highest[2 * node], steps[2 * node] + highest[2 * node + 1])
        latest[node] = max(latest[2 * node], latest[2 * node + 1])
    group, number = np.full(n, -1, np.int64), 0
    while highest[1] > 1:
        moment = _peak(steps, highest, leaves)
        s = _reported_from(latest, moment, leaves)
        while s <= moment:
            group[s] = number
            _take(steps, highest, latest, s, arrives[s], leaves)
            s = _reported_from(latest, moment, leaves)
        number += 1
    for s in range(n):
        if group[s] < 0:
            group[s] = number
            number += 1
    return group


@compiled
def _peak(steps: Tree, highest: Tree, leaves: int) -> int:
    """The first moment with the most outstanding rounds."""
    node = 1
    while node < leaves:
        node *= 2
        if highest[node] < steps[node] + highest[node + 1]:
            node += 1
    return node - leaves


@compiled
def _reported_from(latest: Tree, moment: int, leaves: int) -> int:
    """The first round whose report comes at this moment or later, or one beyond the game."""
    if latest[1] < moment:
        return leaves
    node = 1
    while node < leaves:
        node *= 2
        if latest[node] < moment:
            node += 1
    return node - leaves


@compiled
def _take(steps: Tree, highest: Tree, latest: Tree, s: int, end: int, leaves: int) -> None:
    """Take a round out of both trees."""
    latest[leaves + s] = -1
    node = (leaves + s) // 2
    while node:
        latest[node] = max(latest[2 * node], latest[2 * node + 1])
        node //= 2
    for at, change in ((s, -1), (end + 1, 1)):
        node = leaves + at
        steps[node] += change
        highest[node] = steps[node]
        node //= 2
        while node:
            steps[node] = steps[2 * node] + steps[2 * node + 1]
            highest[node] = max(highest[2 * node], steps[2 * node] + highest[2 * node + 1])
            node //= 2
