"""Servers, clients and oracles that tests share."""
