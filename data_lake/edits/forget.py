"""Giving up old versions of a data set: those that no record, no unfinished run and no tag names.

Nothing is removed here. `gc` takes the files, once they are older than its grace and what is said here is, too.
"""

from collections.abc import Mapping

from data_lake.edits.tags import tags
from data_lake.files import LakePath
from data_lake.given_up import give_up
from data_lake.head import SCHEME
from data_lake.refs import DatasetRef
from data_lake.runs import runs
from data_lake.store import records
from data_lake.tables import dataset_root, versions
from errors import UserError

Pins = Mapping[int, str]
"""Version to what needs it, in words."""


def forget_before(lake: LakePath, dataset: str, before: int, *, who: str) -> tuple[list[int], dict[int, str]]:
    """Give up every version older than `before`: those that were, and those that something needs, with what.

    Raises UserError LAKE-002 without such a data set, LAKE-188 when the newest would go.
    """
    root = dataset_root(lake, dataset)
    known = versions(root)
    if not known:
        raise UserError("LAKE-002", f"the lake has no data set {dataset!r}", where=str(root))
    if before > known[-1]:
        raise UserError(
            "LAKE-188",
            f"version {known[-1]} is the newest of {dataset}: it stays",
            where=str(root),
            done="nothing was given up",
            next_step=f"--forget-before {known[-1]}, or less",
        )
    needed = pins(lake, dataset)
    given = [version for version in known if version < before and version not in needed]
    for version in given:
        give_up(root, version, who=who)
    return given, {version: why for version, why in sorted(needed.items()) if version in known and version < before}


def pins(lake: LakePath, dataset: str) -> Pins:
    """Versions that a view of some record, the snapshot of an unfinished run, or a tag needs."""
    found: dict[int, str] = {}
    for record in records(lake):
        if record["ref"]["type"] == DatasetRef.__name__ and record["ref"]["dataset"] == dataset:
            found[record["ref"]["version"]] = f"{record['stage']}/{record['fingerprint'][:8]} reads it"
    for run in runs(lake):
        seen = None if run.is_finished() else run.source_seen()
        if seen is not None and seen.path.startswith(f"{SCHEME}{dataset}@"):
            version = seen.path.removeprefix(f"{SCHEME}{dataset}@").partition("/")[0]
            found[int(version)] = f"run {run.run_id} began on it"
    for tag in tags(dataset_root(lake, dataset)):
        found[tag.version] = f"it has the tag {tag.name}"
    return found
