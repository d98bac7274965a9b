"""Losses and delays, by rule, by name or from files."""
