"""How many decisions an experiment needs until it is decided, by simulation."""
