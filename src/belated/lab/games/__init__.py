"""Algorithms that play problems, compiled or through ask and tell."""
