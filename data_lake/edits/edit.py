"""What all edits share: beginning again when a rival writer was first, and looking at a version before it is one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from data_lake.doctor import contents_findings
from data_lake.edits.contents import damaged
from data_lake.files import LakePath
from data_lake.tables import TABLES, Manifest, open_table
from data_lake.version import DatasetVersion, open_version
from data_lake.writer import Writer
from errors import Transient

TRIES = 100  # of rival writers, each of which got something in

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True, slots=True)
class Edited:
    """The newest version after an edit; is_new: this edit made it, else there was nothing to change. told: figures."""

    dataset: str
    version: int
    is_new: bool
    told: Mapping[str, Any] = field(default_factory=dict)


def repeated(root: LakePath, attempt: Callable[[Writer], Made | None]) -> Made:
    """What `attempt` gives. None means that a rival writer was first: it begins again, on what the rival made."""
    for _ in range(TRIES):
        made = attempt(Writer(root))
        if made is not None:
            return made
    raise Transient(f"{TRIES} other writers changed {root.name} first")


def version_before(lake: LakePath, dataset: str, writer: Writer) -> DatasetVersion:
    """The version that `writer` begins on. Raises UserError LAKE-002 when there is none yet, LAKE-076
    when one of its files is damaged."""
    version = open_version(lake, dataset if writer.base is None else f"{dataset}@{writer.base.version}")
    version.ensure_intact()
    return version


def ensure_whole(root: LakePath, episodes: Sequence[Mapping[str, Any]], *, stored: bool) -> Callable[[Manifest], None]:
    """For `Writer.commit`: the tables hold what the episodes name. stored: every byte of video is read back, too.

    Raises UserError LAKE-186 where not.
    """

    def check(manifest: Manifest) -> None:
        tables = {name: open_table(root, manifest, name) for name in TABLES}
        for item in contents_findings(tables, manifest, episodes, stored=stored):
            raise damaged(f"{item.code} {item.message}", root.name)

    return check
