"""Requests become journal entries, and are answered once they are durable."""
