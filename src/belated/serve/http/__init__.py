"""The service over HTTP: routes, handlers and documents."""
