"""Fewer, larger files for a data set that grew in small steps: the same rows and videos, as a new version."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from blake3 import blake3
from lance.fragment import FragmentMetadata, LanceFragment

from data_lake.edits.edit import Edited, damaged, ensure_whole, repeated, version_before
from data_lake.files import LakePath
from data_lake.references import referenced
from data_lake.schema import rows_digest
from data_lake.tables import Manifest, dataset_root, open_table, read_meta
from data_lake.version import DatasetVersion
from data_lake.writer import FRAGMENT_BYTES, Writer

ROWS = 1 << 16  # compared at a time


def compact(lake: LakePath, dataset: str, *, who: str) -> Edited:
    """Neighbouring fragments that are less than half full are written together. Every row, and every byte of video, is
    read back and compared before the version is one; nothing is removed, old versions read as before.

    Raises UserError LAKE-002 without such a data set, LAKE-186 when what is stored is not what was recorded.
    """
    root = dataset_root(lake, dataset)

    def attempt(writer: Writer) -> Edited | None:
        version = version_before(lake, dataset, writer)
        told: dict[str, Any] = {}
        for name, rewritten in (("frames", _frames), ("videos", _videos)):
            groups = _groups(version.table(name))
            num_before = num_after = sum(map(len, groups))
            if num_before > len(groups):
                fragments = rewritten(writer, version.table(name), groups)
                writer.put_instead(name, fragments)
                num_after = len(fragments)
            told[name] = {"fragments_before": num_before, "fragments": num_after}
        if all(each["fragments_before"] == each["fragments"] for each in told.values()):
            return Edited(dataset=dataset, version=version.manifest.version, is_new=False, told=told)
        manifest = writer.commit(
            read_meta(root, version.manifest),
            num_episodes=version.manifest.num_episodes,
            edit={"compact": told, "by": who},
            check=lambda manifest: _ensure_same(version, manifest),
        )
        return manifest and Edited(dataset=dataset, version=manifest.version, is_new=True, told=told)

    return repeated(root, attempt)


def _groups(table: lance.LanceDataset) -> list[list[LanceFragment]]:
    """All fragments in order; neighbours that are to be one stand together."""
    groups: list[list[LanceFragment]] = []
    was_small = False
    for fragment in table.get_fragments():
        is_small = _num_bytes(fragment) < FRAGMENT_BYTES / 2 and not _lies_elsewhere(fragment)
        if is_small and was_small:
            groups[-1].append(fragment)
        else:
            groups.append([fragment])
        was_small = is_small
    return groups


def _lies_elsewhere(fragment: LanceFragment) -> bool:
    """Whether it holds references: these are in fragments of their own, and stay so."""
    return "video_bytes" in fragment.schema.names and bool(referenced(fragment))


def _num_bytes(fragment: LanceFragment) -> int:
    """Of its rows in memory; of videos their own bytes."""
    if "file_size" in fragment.schema.names:
        return sum(fragment.to_table(columns=["file_size"])["file_size"].to_pylist())
    return fragment.count_rows() * fragment.head(1).nbytes


def _frames(
    writer: Writer, _table: lance.LanceDataset, groups: Sequence[list[LanceFragment]]
) -> list[FragmentMetadata]:
    fragments: list[FragmentMetadata] = []
    for group in groups:
        if len(group) == 1:
            fragments.append(group[0].metadata)
            continue
        pending: list[pa.Table] = []
        for fragment in group:
            pending.append(fragment.to_table())
            if sum(each.nbytes for each in pending) >= FRAGMENT_BYTES:
                fragments += writer.write_frames(pa.concat_tables(pending))
                pending = []
        if pending:
            fragments += writer.write_frames(pa.concat_tables(pending))
    return fragments


def _videos(writer: Writer, table: lance.LanceDataset, groups: Sequence[list[LanceFragment]]) -> list[FragmentMetadata]:
    fragments: list[FragmentMetadata] = []
    columns = [name for name in table.schema.names if name != "video_bytes"]
    row = 0
    for group in groups:
        count = sum(fragment.count_rows() for fragment in group)
        if len(group) == 1:
            fragments.append(group[0].metadata)
        else:
            shelves = writer.new_shelves()
            for number, video in enumerate(table.to_table(columns=columns, offset=row, limit=count).to_pylist()):
                shelves.put(partial(_stored, table, row + number, video["blake3"]), video)
            fragments += shelves.finish()
        row += count
    return fragments


def _stored(table: lance.LanceDataset, row: int, digest: str) -> bytes:
    blob = table.take_blobs("video_bytes", indices=[row])[0]
    content = b"" if blob is None else blob.read()
    if blake3(content).hexdigest() != digest:
        raise damaged(f"row {row} of videos.lance has another BLAKE3", Path(table.uri).parent.name)
    return content


def _ensure_same(version: DatasetVersion, manifest: Manifest) -> None:
    """Raises UserError LAKE-186 unless the tables at `manifest` hold what those of `version` hold."""
    ensure_whole(version.root, version.episodes, stored=True)(manifest)
    fps = version.info["fps"]
    old, new = (open_table(version.root, each, "frames") for each in (version.manifest, manifest))
    for begin in range(0, manifest.num_frames, ROWS):
        here, there = (rows_digest(table.to_table(offset=begin, limit=ROWS), fps) for table in (old, new))
        if here != there:
            raise damaged(f"rows {begin} to {begin + ROWS} came out differently", version.name)
    old, new = (open_table(version.root, each, "videos") for each in (version.manifest, manifest))
    columns = [name for name in old.schema.names if name != "video_bytes"]
    if not old.to_table(columns=columns).equals(new.to_table(columns=columns)):
        raise damaged("the list of videos came out differently", version.name)
