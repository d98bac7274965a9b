"""The systems that the lab can play, by name, and whatever else may play."""

from belated.lab.algorithms.algorithm import Algorithm, Game, Player, Setting, setting_of
from belated.lab.algorithms.registry import ALGORITHMS, BY_NAME
from belated.lab.algorithms.specs import find, named, resolve

__all__ = ["ALGORITHMS", "BY_NAME", "Algorithm", "Game", "Player", "Setting", "find", "named", "resolve", "setting_of"]
