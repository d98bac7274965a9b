"""Tests that need real processes, PostgreSQL, a browser, nginx or Dask."""
