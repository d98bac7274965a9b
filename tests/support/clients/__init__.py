"""Clients of a service that remember what was acknowledged, and checks that none of it is lost."""
