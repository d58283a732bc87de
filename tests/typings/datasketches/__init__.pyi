"""Names of this module are made when it is imported, out of a type checker's sight."""

from typing import Any

def __getattr__(name: str) -> Any: ...
