"""The service over HTTP: a table of routes, their handlers, the documents they take and give."""
