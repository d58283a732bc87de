"""Versions of a data set that were given up: nobody may open them any more, and gc takes what only they need.

The word of it is put beside the manifests, which stay: a version's number is never used again, so that a writer that
began on an old version cannot bring it back.
"""

import json
import time

from data_lake.files import LakePath, put_if_absent, read_json
from errors import UserError


def given_up(root: LakePath) -> set[int]:
    """Versions of the data set at `root` that were given up."""
    return {int(path.stem) for path in (root / "given-up").glob("[0-9]*.json")}


def given_up_path(root: LakePath, version: int) -> LakePath:
    return root / "given-up" / f"{version:06d}.json"


def give_up(root: LakePath, version: int, *, who: str) -> None:
    """For good. Its files stay until `gc` finds that nothing needs them, some time after this."""
    word = {"version": version, "by": who, "at": time.time()}
    put_if_absent(given_up_path(root, version), json.dumps(word, indent=1).encode())


def given_up_at(root: LakePath, version: int) -> float:
    """Seconds since 1970."""
    return read_json(given_up_path(root, version), remedy="remove the file, and give the version up again")["at"]


def expired(root: LakePath, version: int) -> UserError:
    """LAKE-182."""
    return UserError(
        "LAKE-182",
        f"version {version} of {root.name} was given up",
        where=str(given_up_path(root, version)),
        next_step=f"name another version; {root.name} alone is the newest",
    )
