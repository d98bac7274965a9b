"""Turns requests into journal entries, and answers them once they are on disk."""
