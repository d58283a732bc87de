"""What each command does; `flows/cli.py` says how it is called. Imported when the command is given, not before."""
