"""What lies beside the tables of a data set: its tags, views, words of versions given up, and files of other names."""

from collections.abc import Iterator

from data_lake.edits.tags import history, tag_names
from data_lake.files import LakePath, name_below
from data_lake.findings import Finding, finding
from data_lake.given_up import word_of
from data_lake.saved_views import open_saved, revisions, view_names
from data_lake.sealed import CHANGED, numbered
from errors import UserError

FOLDERS = ("manifests", "given-up", "tags/*", "views/*")


def beside_findings(root: LakePath) -> Iterator[Finding]:
    """LAKE-242 for a small file that does not hold, LAKE-243 for one whose name nothing here has."""
    for error in _damaged(root):
        yield finding("LAKE-242", error.message.removeprefix(f"{CHANGED}: "), file=error.where)
    for folder in (each for pattern in FOLDERS for each in sorted(root.glob(pattern))):
        known = set(numbered(folder).values())
        for path in sorted(folder.glob("*.json")):
            if path not in known:
                yield finding("LAKE-243", file=name_below(root, path))


def _damaged(root: LakePath) -> Iterator[UserError]:
    for path in numbered(root / "given-up").values():
        try:
            word_of(path)
        except UserError as error:
            yield error
    for name in tag_names(root):
        try:
            history(root, name)
        except UserError as error:
            yield error
    for name in view_names(root):
        for revision in revisions(root, name):
            try:
                open_saved(root, name, revision)
            except UserError as error:
                yield error
