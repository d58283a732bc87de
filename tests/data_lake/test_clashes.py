"""No two names of a source become one in the lake: what would be lost is named, and nothing else is said."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.clashes import one_in_the_lake
from data_lake.schema import PLACE, canonical
from data_lake.sources.episode import view_name
from errors import UserError
from tests.data_lake.recordings import change_info, rows_of, write_v2
from tests.data_lake.seen import content, ingest

NAMES = st.sets(st.lists(st.sampled_from(["next", "reward", "x"]), min_size=1, max_size=3).map(tuple), max_size=4)
COLUMNS = NAMES.flatmap(
    lambda parts: st.tuples(*(st.sampled_from([".", "_"]).map(lambda dot, each=each: dot.join(each)) for each in parts))
)


def table(*names: str) -> pa.Table:
    return pa.table({name: [1.0, 2.0] for name in names})


@given(one=COLUMNS, other=COLUMNS)
def test_something_is_said_exactly_when_a_column_would_be_lost(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    rows = table(*dict.fromkeys((*one, *other)))
    said = list(one_in_the_lake(rows, (), ()))
    assert bool(said) == (canonical(rows).num_columns < rows.num_columns)


@given(cameras=st.sets(st.sampled_from(["front", "observation.front", "observation.images.front", "observation.side"])))
def test_the_same_of_cameras(cameras: set[str]) -> None:
    said = list(one_in_the_lake(table(), (), cameras))
    assert bool(said) == (len({view_name(camera) for camera in cameras}) < len(cameras))


@pytest.mark.parametrize("name", [name.replace("_", ".") for name in PLACE if "_" in name])
def test_the_lake_s_own_numbers_are_not_taken_over(name: str) -> None:
    (said,) = one_in_the_lake(table(name), (), ())
    assert repr(name) in said and repr(name.replace(".", "_")) in said


def test_a_column_beside_a_camera_and_a_declared_one_beside_another() -> None:
    assert len(list(one_in_the_lake(table("observation_images_front"), (), ["observation.images.front"]))) == 1
    assert len(list(one_in_the_lake(table("next_reward"), ["next.reward"], []))) == 1
    assert not list(one_in_the_lake(table("annotation.a", "annotation_a"), (), ()))


def twice(*columns: str) -> Any:
    def rows(episode: int, length: int, first: int) -> pa.Table:
        made = rows_of(episode, length, first)
        for number, name in enumerate(columns):
            made = made.append_column(name, pa.array([[float(number)] * 3] * length, pa.list_(pa.float32())))
        return made

    return rows


@pytest.mark.parametrize(
    ("columns", "cameras", "named"),
    [
        (("observation_state",), (), ("observation.state", "observation_state")),
        (("next.reward", "next_reward"), (), ("next.reward", "next_reward")),
        ((), ("observation.images.front", "observation.front"), ("observation.images.front", "observation.front")),
    ],
)
def test_such_a_source_is_refused_by_both_names(
    columns: tuple[str, ...], cameras: tuple[str, ...], named: tuple[str, str], tmp_path: Path
) -> None:
    source = write_v2(tmp_path / "v2", cameras=cameras, rows=twice(*columns))
    change_info(source, features={})  # columns are taken as they are
    with pytest.raises(UserError) as refused:
        ingest(source, tmp_path / "cart")
    assert refused.value.code == "LAKE-001" and "LAKE-230" in refused.value.message
    assert all(repr(name) in refused.value.message for name in named)


def test_one_such_episode_stays_out(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "v2")
    change_info(source, features={})  # columns are taken as they are
    file = source / "data/chunk-000/episode_000001.parquet"
    pq.write_table(twice("observation_state")(1, 12, 8), file)
    done = ingest(source, tmp_path / "cart")
    assert (done.num_episodes, done.num_quarantined) == (2, 1)
    assert content(tmp_path / "cart")["frames"]["index"] == list(range(18))
