"""What an experiment is and how entries change it. No I/O."""
