"""One learner whose copies draw in several places."""
