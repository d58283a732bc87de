"""Whatever value stands in a source's metadata or rows: it is named, and nothing else is raised."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake.doctor import doctor
from data_lake.ingest import ingest_source
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2, write_v3

ODD = st.sampled_from([None, True, -1, 0, 7, 1e30, float("nan"), float("inf"), "", "x", [], [1], ["a"], {}, {"a": 1}])
VERSIONS = ("v2", "v3")


def recorded(root: Path, version: str) -> Path:
    v2 = write_v2(root / "v2")
    source = v2 if version == "v2" else write_v3(root / "v3", v2)
    (source / "meta/stats.json").write_text('{"action": {"mean": [1.0]}, "observation.state": {"count": [3]}}')
    return source


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(spot for key, child in children for spot in spots(child, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], odd: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = odd


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["info.json", "episodes.jsonl", "tasks.jsonl", "stats.json", "episodes_stats.jsonl"])
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_odd_metadata_is_named(version: str, name: str, tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / version if (tmp_path / version).exists() else recorded(tmp_path, version)
    path = source / "meta" / name
    if not path.exists():
        return  # v3.0 lists in parquet
    before = path.read_text()
    lines = [json.loads(line) for line in before.splitlines()] if name.endswith("l") else [json.loads(before)]
    put(lines, data.draw(st.sampled_from(spots(lines))), data.draw(ODD))
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    with suppress(UserError):
        found = doctor(str(source))["episodes"]
        assert found["in"] == found["ok"] + found["quarantined"]
    path.write_text(before)


@pytest.mark.parametrize("column", ["timestamp", "frame_index", "episode_index", "task_index", "action", "task", "new"])
@pytest.mark.parametrize(
    "values",
    [[[1.0]], [None], ["x"], [{"a": 1}], [[[1.0]]], [float("nan")], [[]], [b"x"]],
    ids=["list", "null", "text", "struct", "matrix", "nan", "empty", "bytes"],
)
def test_odd_rows_cost_one_episode_at_most(column: str, values: list[Any], tmp_path: Path) -> None:
    source = write_v2(tmp_path / "source")
    path = source / "data/chunk-000/episode_000001.parquet"
    table = pq.read_table(path)
    odd = pa.array(values * table.num_rows)
    place = table.column_names.index(column) if column in table.column_names else None
    table = table.append_column(column, odd) if place is None else table.set_column(place, column, odd)
    pq.write_table(table, path)
    assert doctor(str(source))["episodes"]["ok"] >= 2
    done = ingest_source(source, SPEC, dataset_root=tmp_path / "cart", out_dir=tmp_path / "out")
    assert done.num_episodes >= 2 and done.num_episodes + done.num_quarantined == 3


def test_a_column_that_stands_twice_costs_one_episode(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "source")
    path = source / "data/chunk-000/episode_000001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("action", table["action"]), path)
    found = doctor(str(source))
    assert (found["episodes"]["ok"], found["findings"][0]["code"]) == (2, "LAKE-019")
