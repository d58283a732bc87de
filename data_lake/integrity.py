"""Integrity: what the files that a version's tables consist of held when it was made, so that a changed byte is named
before anybody reads it.

Digests stand in the manifest by file, one per 16 MiB. Videos are not among them: each row of `videos.lance` has one.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import lance
from blake3 import blake3

from data_lake.files import LakePath, name_below
from errors import UserError

BLOCK = 16 << 20  # bytes; a finding says which of them changed
NEWEST_FIRST = 2**64 - 1  # Lance names a version's file by how far it is from this
RESTORE = "restore the data set from a copy, or ingest its sources into a new one"

Digests = Mapping[str, Sequence[str]]
"""File, relative to the data set's root, to the hex BLAKE3 of each of its blocks in order."""

_intact: dict[tuple[str, int, int, int, int], Sequence[str]] = {}
"""(path, inode, size, mtime_ns, ctime_ns) to what this process found there."""


def version_file(table: LakePath, version: int) -> LakePath:
    """What says which data files a version of a Lance table has (lance-format, "Table layout", naming scheme V2)."""
    return table / "_versions" / f"{NEWEST_FIRST - version}.manifest"


def digests(root: LakePath, vector: Mapping[str, int], known: Digests) -> dict[str, Sequence[str]]:
    """Of every file of these table versions but stored videos. known: those of the version before; no file is ever
    written twice."""
    found: dict[str, Sequence[str]] = {}
    for name, version in vector.items():
        path = root / f"{name}.lance"
        paths = [version_file(path, version)]
        for fragment in lance.dataset(str(path), version=version).get_fragments():
            paths += [path / "data" / file.path for file in fragment.data_files()]
        for each in paths:
            title = name_below(root, each)
            found[title] = known[title] if title in known else digest_blocks(each)
    return found


def damage(root: LakePath, held: Digests, *below: str) -> Iterator[tuple[str, str]]:
    """Files in the folders `below` that are not what they were, and which bytes: (name below `root`, words)."""
    for title, expected in held.items():
        if not title.startswith(tuple(f"{folder}/" for folder in below)):
            continue
        try:
            found = _seen(root / title)
        except FileNotFoundError:
            yield title, "the file is gone"
            continue
        if len(found) != len(expected):
            yield title, f"it has {len(found)} blocks of {BLOCK:,} bytes, not {len(expected)}"
        elif differing := [number for number in range(len(found)) if found[number] != expected[number]]:
            first, last = differing[0] * BLOCK, (differing[-1] + 1) * BLOCK
            yield title, f"bytes changed between {first:,} and {last:,}"


def ensure_intact(root: LakePath, held: Digests, *below: str) -> None:
    """Raises UserError LAKE-076 for the first file in the folders `below` that is not what it was."""
    for title, what in damage(root, held, *below):
        raise UserError(
            "LAKE-076", f"a file of the data set is damaged: {what}", where=str(root / title), next_step=RESTORE
        )


def _seen(path: LakePath) -> Sequence[str]:
    """As `digest_blocks`; a file of this machine that nobody touched since is not read again."""
    if not isinstance(path, Path):
        return digest_blocks(path)
    stat = path.stat()
    key = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    if key not in _intact:
        _intact[key] = digest_blocks(path)
    return _intact[key]


def digest_blocks(path: LakePath) -> Sequence[str]:
    """BLAKE3 of each BLOCK of a file, as a manifest has them."""
    with path.open("rb") as file:
        return [blake3(block).hexdigest() for block in iter(lambda: file.read(BLOCK), b"")]
