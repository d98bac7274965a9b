"""What an experiment is, and how journal entries change it. No I/O."""
