"""The learner: decisions now, feedback later."""
