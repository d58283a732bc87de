"""Files of a lake data set that no manifest reaches: what crashed or outrun writers left in its tables."""

import time
from collections.abc import Iterator
from pathlib import Path

import lance

from data_lake.journal import FOLDER, adoptable
from data_lake.shelf import stored_files
from data_lake.tables import TABLES, read_manifest, versions

NEWEST_FIRST = 2**64 - 1  # Lance names a version's file by how far it is from this


def orphans(root: Path, *, older_than_s: float) -> list[Path]:
    """Files under the tables of `root` that no version of the data set needs and nobody wrote lately.

    What an unfinished ingest may take up is spared, as long as it may. A living writer's files are younger than
    `older_than_s`, or they are taken from it.
    """
    before = time.time() - older_than_s
    found: list[Path] = []
    notes, adopted = adoptable(root, max(versions(root), default=0))
    found += [path for path in (root / FOLDER).glob("*/*") if path not in notes and path.stat().st_mtime < before]
    if not versions(root):  # nothing was ever finished here
        if notes:
            return found
        everything = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return everything if all(path.stat().st_mtime < before for path in everything) else []
    for name in TABLES:
        path = root / f"{name}.lance"
        if path.is_dir():
            kept = _needed(root, path, name) | {file for data in adopted for file in stored_files(data)}
            found += [file for file in _files(path) if file not in kept and file.stat().st_mtime < before]
    return found


def _files(path: Path) -> Iterator[Path]:
    return (file for file in sorted(path.rglob("*")) if file.is_file() and file.name != "latest_version_hint.json")


def _needed(root: Path, path: Path, name: str) -> set[Path]:
    """Data files, blobs and version files of every pinned version, and of the latest."""
    manifests = [read_manifest(root, version) for version in versions(root)]
    pinned = {manifest.vector[name] for manifest in manifests if manifest is not None}
    pinned.add(lance.dataset(str(path)).version)
    needed: set[Path] = set()
    for version in pinned:
        table = lance.dataset(str(path), version=version)
        needed |= {
            path / "_versions" / f"{NEWEST_FIRST - version}.manifest",
            path / "_versions" / f"{version}.manifest",
        }
        transaction = sorted((path / "_transactions").glob(f"{version - 1}-*.txn"))
        needed |= set(transaction)
        for fragment in table.get_fragments():
            for file in fragment.data_files():
                needed.add(path / "data" / file.path)
                needed |= set((path / "data" / Path(file.path).stem).glob("*"))
    return needed
