"""The systems that the lab can play, by name."""

from belated.lab.algorithms.algorithm import Algorithm, Game, Player, Setting, setting_of
from belated.lab.algorithms.registry import ALGORITHMS, BY_NAME, find

__all__ = ["ALGORITHMS", "BY_NAME", "Algorithm", "Game", "Player", "Setting", "find", "setting_of"]
