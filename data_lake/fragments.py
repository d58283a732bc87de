"""Fragments of samples.lance: a file with what an episode's content decides, and one with its place in the view.

The first is the same wherever the episode is and may be adopted from an earlier build; the second is small.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments
from lance.schema import LanceSchema

from data_lake.samples import view_column
from data_lake.tiers import DECODED, VIDEO
from data_lake.video_tier import video_fields
from errors import Transient, UserError

PLACED = ("split", "episode_index", "source_episode", "task_index", "first_step", "text_tokens")
AS_THEY_ARE = {"lance-encoding:compression": "none"}  # unpacking them took two thirds of the time to read a batch
MOST_ROWS, MOST_BYTES = 2**31 - 1, 2**46  # of a file: a part is never two


def samples_schema(views: list[str], proprio_dim: int, images: str = DECODED) -> pa.Schema:
    """Columns of samples.lance. `first_step`: row of steps.lance; `num_steps`: control steps from there to the
    end of the episode; `view_<name>`: one image as the tier `images` keeps it, null where the episode lacks the view;
    of the video tier, where it is (see `video_columns`)."""
    kept = [pa.field(view_column(name), pa.large_binary(), metadata=AS_THEY_ARE) for name in views]
    return pa.schema(
        [
            pa.field("split", pa.int8()),
            pa.field("episode_index", pa.int32()),
            pa.field("source_episode", pa.int32()),
            pa.field("frame_index", pa.int32()),
            pa.field("task_index", pa.int32()),
            pa.field("first_step", pa.int64()),
            pa.field("num_steps", pa.int32()),
            pa.field("proprio", pa.list_(pa.float32(), proprio_dim)),
            pa.field("text_tokens", pa.list_(pa.int32())),
            pa.field("num_views", pa.int8()),
            *(video_fields(views) if images == VIDEO else kept),
        ]
    )


def placed_part(schema: pa.Schema) -> pa.Schema:
    """The columns that depend on the whole view."""
    return pa.schema([field for field in schema if _is_placed(field)])


def content_part(schema: pa.Schema) -> pa.Schema:
    """The columns that an episode's content decides."""
    return pa.schema([field for field in schema if not _is_placed(field)])


def _is_placed(field: pa.Field) -> bool:
    """Where a picture is depends on the data set; what it shows does not."""
    return field.name in PLACED or (field.name.startswith(view_column("")) and not pa.types.is_large_binary(field.type))


def write_part(batches: Iterable[pa.RecordBatch], schema: pa.Schema, table: Path) -> dict[str, Any]:
    """A file of `table` with these rows, as they come: the JSON of its fragment, which no version has yet.

    Raises the UserError or Transient of making a batch as itself.
    """
    failed: list[UserError | Transient] = []

    def watched() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except (UserError, Transient) as error:
            failed.append(error)  # Lance would only pass its text on, in an OSError
            raise

    reader = pa.RecordBatchReader.from_batches(schema, watched())
    try:
        (fragment,) = write_fragments(
            reader, str(table), schema=schema, mode="create", max_rows_per_file=MOST_ROWS, max_bytes_per_file=MOST_BYTES
        )
    except OSError as error:
        raise (failed or [error])[0] from None
    return fragment.to_json()


def data_file(part: dict[str, Any]) -> str:
    """The name of the one file of a fragment."""
    return part["files"][0]["path"]


class Joining:
    """Makes one fragment of `schema` of a file with the content of samples and one with their places."""

    def __init__(self, schema: pa.Schema) -> None:
        numbers = _numbers(schema)
        self._renumbered = [
            {number: numbers[path] for path, number in _numbers(part).items()}
            for part in (content_part(schema), placed_part(schema))
        ]

    def fragment(self, content: dict[str, Any], placed: dict[str, Any]) -> FragmentMetadata:
        """The same rows in both."""
        files = [
            {**part["files"][0], "fields": [number_of[number] for number in part["files"][0]["fields"]]}
            for number_of, part in zip(self._renumbered, (content, placed), strict=True)
        ]
        return FragmentMetadata.from_json(json.dumps({**content, "files": files}))


def _numbers(schema: pa.Schema) -> dict[str, int]:
    """Lance's number of each field and of those within it, by dotted path."""
    found: dict[str, int] = {}

    def visit(field: Any, prefix: str) -> None:
        path = f"{prefix}{field.name()}"
        found[path] = field.id()
        for child in field.children():
            visit(child, f"{path}.")

    for field in LanceSchema.from_pyarrow(schema).fields():
        visit(field, "")
    return found


def commit(table: Path, schema: pa.Schema, fragments: list[FragmentMetadata]) -> None:
    """Make `table` of these fragments, in this order."""
    lance.LanceDataset.commit(str(table), lance.LanceOperation.Overwrite(schema, fragments))
