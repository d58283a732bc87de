"""What launchers and crews start: programs of their own, each in its own process."""
