"""One file for each paper, with what it played and what it printed."""
