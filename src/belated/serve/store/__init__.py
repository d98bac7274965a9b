"""Keeps the journal, in SQLite or PostgreSQL."""
