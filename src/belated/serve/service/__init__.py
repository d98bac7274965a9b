"""The service without HTTP: one facade for the handlers, with keys and views."""
