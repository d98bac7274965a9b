"""Many games at once: tables, figures, sweeps."""
