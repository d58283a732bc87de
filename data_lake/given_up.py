"""Versions of a data set that were given up: nobody may open them any more, and gc takes what only they need.

The word of it is put beside the manifests, which stay: a version's number is never used again, so that a writer that
began on an old version cannot bring it back.
"""

import time

from data_lake.files import LakePath, put_if_absent
from data_lake.sealed import numbered, sealed, unsealed
from errors import UserError


def given_up(root: LakePath) -> set[int]:
    """Versions of the data set at `root` that were given up."""
    return set(numbered(root / "given-up"))


def given_up_path(root: LakePath, version: int) -> LakePath:
    return root / "given-up" / f"{version:06d}.json"


def give_up(root: LakePath, version: int, *, who: str) -> None:
    """For good. Its files stay until `gc` finds that nothing needs them, some time after this."""
    word = {"version": version, "by": who, "at": time.time()}
    put_if_absent(given_up_path(root, version), sealed(word))


def given_up_at(root: LakePath, version: int) -> float:
    """Seconds since 1970; where the word does not hold, those at which its file was last written. Given up it is."""
    path = given_up_path(root, version)
    try:
        return word_of(path)
    except UserError:
        return path.stat().st_mtime


def word_of(path: LakePath) -> float:
    """When a version was given up, in seconds since 1970. Raises UserError as `unsealed`."""
    return unsealed(path, lambda word: float(word["at"]), remedy="remove the file, and give the version up again")


def expired(root: LakePath, version: int) -> UserError:
    """LAKE-182."""
    return UserError(
        "LAKE-182",
        f"version {version} of {root.name} was given up",
        where=str(given_up_path(root, version)),
        next_step=f"name another version; {root.name} alone is the newest",
    )
