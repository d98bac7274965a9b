"""Processes that serve: one, or several workers."""
