"""Names of data sets: letters, digits, `.`, `-` and `_`, so that none leads anywhere else. Standard library only."""

import re

from errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def ensure_name(name: str) -> None:
    """Raises UserError LAKE-034 for a name that could lead anywhere else."""
    if not NAME.fullmatch(name):
        raise UserError(
            "LAKE-034", f"not a name for a data set: {name!r}", next_step="use letters, digits, `.`, `-` and `_`"
        )
