"""Takes decisions out of a store in use: into files, or for good."""
