"""What tests see of a data set: all that a reader sees of one of its versions."""

import json
import tempfile
from pathlib import Path
from typing import Any

from data_lake import lake_meta
from data_lake.files import LakePath
from data_lake.ingest import ingest_source
from data_lake.ingested import Ingested
from data_lake.sources.snapshot import digests
from data_lake.specs import IngestSpec
from data_lake.tables import open_table, read_manifest, read_meta
from tests.data_lake.crashing_ingest import SPEC

LENGTHS = (8, 12, 10)


def ingest(source: Path, root: LakePath, spec: IngestSpec = SPEC, **options: Any) -> Ingested:
    """As the stage does it: with the digests of the source's files, unless `options` has others. What an ingest writes
    beside the lake is in `{root}-out`, or for a lake on an object store gone."""
    with tempfile.TemporaryDirectory() as temporary:
        beside = root.parent if isinstance(root, Path) else Path(temporary)
        options = {"digests": digests(source, beside / "snapshots"), **options}
        return ingest_source(source, spec, dataset_root=root, out_dir=beside / f"{root.name}-out", **options)


def content(root: LakePath, version: int | None = None) -> dict[str, Any]:
    """All that a reader sees of a version, without what only says where and when."""
    manifest = read_manifest(root, version)
    assert manifest is not None
    videos = open_table(root, manifest, "videos").to_table(columns=["video_key", "file_index", "blake3"])
    meta = read_meta(root, manifest)
    return {
        "frames": open_table(root, manifest, "frames").to_table().to_pydict(),
        "videos": videos.to_pydict(),
        "episodes": lake_meta.read_table(meta[lake_meta.EPISODES]).drop_columns(["source"]).to_pydict(),
        "tasks": lake_meta.read_table(meta[lake_meta.TASKS]).to_pydict(),
        "info": json.loads(meta[lake_meta.INFO]),
        "stats": json.loads(meta[lake_meta.STATS]),
        "counts": (manifest.num_episodes, manifest.num_frames, manifest.num_videos),
    }
