"""The stages of the loop, one module each, and what turns them into build-once tasks."""
