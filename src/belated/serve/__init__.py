"""The decision service: a journal and a fold, behind HTTP."""
