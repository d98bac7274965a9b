"""A simulation of the whole service in one thread, driven by a seed.

Real: engines, folds, drawing, judging reports, ending waits, loading, verifying, and the learners.
Simulated: the database, connections to it, the network to clients, clocks, crashes, and time itself. The database may
also lose its newest commits, clocks may jump, and the learner of one experiment may fail.
"""
