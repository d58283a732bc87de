"""Edits of a lake data set: each makes a new version, and a failed one changes nothing."""
