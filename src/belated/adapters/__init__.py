"""Learners, policies and problems of other packages, and Belated's own for them. docs/adapters.md shows each.

There is a module for each package. Import the one whose package you have.
"""
