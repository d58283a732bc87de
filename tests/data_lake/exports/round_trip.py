"""A source taken in and given out again: what tests of exports begin with."""

from pathlib import Path

from data_lake.exports import publish_folder
from data_lake.specs import IngestSpec
from data_lake.version import DatasetVersion, open_version
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.seen import ingest

LENGTHS = (8, 12, 10)
FORMS = ("v3.0", "v2.1")


def taken_in(source: Path, lake: Path, spec: IngestSpec = SPEC) -> DatasetVersion:
    ingest(source, lake / "datasets/cart", spec)
    return open_version(lake, "cart")


def given_out(version: DatasetVersion, folder: Path, form: str) -> Path:
    publish_folder(version, folder, form)
    return folder


def hashes(version: DatasetVersion) -> list[str]:
    return [episode["content_hash"] for episode in version.episodes]
