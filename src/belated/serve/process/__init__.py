"""Server processes, one or several workers."""
