"""Files of a lake data set that no manifest reaches: what crashed or outrun writers left in its tables."""

import time
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

import lance

from data_lake.files import LakePath, tree
from data_lake.given_up import given_up, given_up_at
from data_lake.integrity import version_file
from data_lake.journal import FOLDER, adoptable
from data_lake.shelf import stored_files
from data_lake.tables import TABLES, manifest_at, manifest_path, versions


def orphans(root: LakePath, *, older_than_s: float, needed: Collection[int] = ()) -> list[LakePath]:
    """Files under the tables of `root` that no version of the data set needs and nobody wrote lately.

    needed: versions that were given up, and that somebody reads all the same. One that was given up lately is spared
    for those who had opened it. What an unfinished ingest may take up is spared, as long as it may. A living writer's
    files are younger than `older_than_s`, or they are taken from it.
    """
    before = time.time() - older_than_s
    finished = versions(root)
    notes, adopted = adoptable(root, max(finished, default=0))
    left = [path for path in (root / FOLDER).glob("*/*") if path not in notes and path.stat().st_mtime < before]
    known = {*finished, *needed, *(each for each in given_up(root) if given_up_at(root, each) >= before)}
    if not known:  # nothing was ever finished here
        if notes:
            return left
        everything = list(tree(root))
        return everything if all(path.stat().st_mtime < before for path in everything) else []
    for name in TABLES:
        path = root / f"{name}.lance"
        if path.is_dir():
            kept = _needed(root, path, name, known) | {file for data in adopted for file in stored_files(data)}
            left += [file for file in _files(path) if file not in kept and file.stat().st_mtime < before]
    return left


def _files(path: LakePath) -> Iterator[LakePath]:
    return (file for file in tree(path) if file.name != "latest_version_hint.json")


def _needed(root: LakePath, path: LakePath, name: str, known: Collection[int]) -> set[LakePath]:
    """Data files, blobs and version files of every version in `known`, and of the table's latest."""
    pinned = {manifest_at(manifest_path(root, version)).vector[name] for version in known}
    pinned.add(lance.dataset(str(path)).version)
    needed: set[LakePath] = set()
    for version in pinned:
        table = lance.dataset(str(path), version=version)
        needed |= {
            version_file(path, version),
            path / "_versions" / f"{version}.manifest",
        }
        transaction = sorted((path / "_transactions").glob(f"{version - 1}-*.txn"))
        needed |= set(transaction)
        for fragment in table.get_fragments():
            for file in fragment.data_files():
                needed.add(path / "data" / file.path)
                needed |= set((path / "data" / PurePosixPath(file.path).stem).glob("*"))
    return needed
