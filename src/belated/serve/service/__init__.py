"""What the HTTP handlers work with."""
