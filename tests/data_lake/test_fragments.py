"""Two files with some columns each are one fragment that reads as if it had been written whole."""

from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from data_lake.fragments import Joining, commit, content_part, placed_part, samples_schema, write_part
from data_lake.steps import fixed_lists
from errors import UserError

SCHEMA = samples_schema(["top"], 3)


def rows(first: int, count: int) -> pa.Table:
    number = np.arange(first, first + count)
    columns = {field.name: pa.array(number % 100, field.type) for field in SCHEMA if pa.types.is_integer(field.type)}
    columns["proprio"] = fixed_lists(number[:, None] + np.zeros(3))
    columns["text_tokens"] = pa.array([list(range(n % 4)) for n in number], pa.list_(pa.int32()))
    columns["view_top"] = pa.array([None if n % 5 == 0 else bytes([n % 256]) * 7 for n in number], pa.large_binary())
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def part(table: pa.Table, schema: pa.Schema, path: Path, at_a_time: int = 3) -> dict:
    return write_part(table.select(schema.names).to_batches(at_a_time), schema, path)


def test_joined_parts_read_as_one_table(tmp_path: Path) -> None:
    path, joining, written = tmp_path / "samples.lance", Joining(SCHEMA), [rows(0, 10), rows(10, 1), rows(11, 9)]
    fragments = [
        joining.fragment(part(each, content_part(SCHEMA), path), part(each, placed_part(SCHEMA), path))
        for each in written
    ]
    commit(path, SCHEMA, fragments)
    table, expected = lance.dataset(str(path)), pa.concat_tables(written)
    assert table.schema == SCHEMA
    assert table.to_table() == expected
    chosen = [19, 0, 10, 11]
    assert table.take(chosen).to_pylist() == expected.take(chosen).to_pylist()
    assert table.take([12], columns=["view_top", "split"]).to_pylist() == [{"view_top": bytes([12]) * 7, "split": 12}]


def test_every_column_is_in_one_part() -> None:
    assert sorted(content_part(SCHEMA).names + placed_part(SCHEMA).names) == sorted(SCHEMA.names)


def test_an_error_on_the_way_comes_out_as_itself(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(0, 2).select(placed_part(SCHEMA).names).to_batches()[0]
        raise UserError("DECODE-002", "broken", where="episode 3")

    with pytest.raises(UserError) as caught:
        write_part(failing(), placed_part(SCHEMA), tmp_path / "samples.lance")
    assert (caught.value.code, caught.value.where) == ("DECODE-002", "episode 3")
