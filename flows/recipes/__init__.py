"""Recipes: what to build, one loop a file. A recipe never names a machine."""
