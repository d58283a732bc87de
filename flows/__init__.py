"""Flows, recipes and the command line."""
