"""Comparisons of several algorithms, with their results and figures."""
