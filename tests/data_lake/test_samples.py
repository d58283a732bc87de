"""A batch by sample ids: own pixels, numbers and words in packed order, boundaries that add up."""

import pickle
from dataclasses import fields
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake import samples as module
from data_lake.packing import TokenCount
from data_lake.samples import Batch, SampleTable
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, VIEWS, rows_of

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=8)
STARTS = [(e, frame) for e, episode in enumerate(RECORDED) for frame in range(0, episode.length, 2)]


@pytest.fixture(scope="module")
def table(coded: CodedLake) -> SampleTable:
    return SampleTable(coded.out)


def check(batch: Batch) -> None:
    """Everything in the batch belongs to its sample ids."""
    assert batch.images.shape[0] == len(batch.image_sample) == len(batch.image_view)
    for image, sample, view in zip(batch.images, batch.image_sample, batch.image_view, strict=True):
        episode, frame = STARTS[batch.sample_ids[sample]]
        assert image[3, 5].tolist() == [episode + 1, frame, 100 + view]
    places = list(zip(batch.image_sample, batch.image_view, strict=True))
    assert places == sorted(places)
    for n, sample in enumerate(batch.sample_ids):
        episode, frame = STARTS[sample]
        proprio_TP, actions_TA = rows_of(episode, RECORDED[episode].length)
        views = [VIEWS[view] for view in batch.image_view[batch.image_sample == n]]
        assert views == [view for view in VIEWS if view in RECORDED[episode].views]
        assert np.array_equal(batch.proprio[n], proprio_TP[frame])
        left = min(8, RECORDED[episode].length - frame)
        assert batch.action_mask[n].tolist() == [True] * left + [False] * (8 - left)
        assert np.array_equal(batch.actions[n, :left], actions_TA[frame : frame + left])
        assert (batch.actions[n, left:] == actions_TA[-1]).all()
        assert batch.text_lengths[n] == len(RECORDED[episode].instruction.split())
        assert batch.prefix_lengths[n] == 4 * len(views) + batch.text_lengths[n] + 1
    assert np.array_equal(np.diff(batch.cu_prefix), batch.prefix_lengths)
    assert np.array_equal(np.diff(batch.cu_suffix), np.full(len(batch.sample_ids), 8))
    assert batch.cu_prefix[0] == batch.cu_suffix[0] == 0
    assert len(batch.text_tokens) == batch.text_lengths.sum()


@given(rows=st.lists(st.lists(st.integers(0, 24), max_size=8), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_samples_in_any_order(table: SampleTable, rows: list[list[int]]) -> None:
    """Repeated ids and empty rows too."""
    batch = table.batch(3, [np.array(row, np.int64) for row in rows], TOKENS)
    assert batch.sample_ids.tolist() == [id_ for row in rows for id_ in row]
    assert batch.row_of_sample.tolist() == [number for number, row in enumerate(rows) for _ in row]
    assert batch.step == 3
    check(batch)


def test_types(table: SampleTable) -> None:
    batch = table.batch(0, [np.array([3, 1])], TOKENS)
    found = {name: str(getattr(batch, name).dtype) for name in Batch.__slots__ if name != "step"}
    assert found == {
        "sample_ids": "int64",
        "row_of_sample": "int32",
        "images": "uint8",
        "image_sample": "int32",
        "image_view": "int32",
        "text_tokens": "int32",
        "text_lengths": "int32",
        "proprio": "float32",
        "actions": "float32",
        "action_mask": "bool",
        "prefix_lengths": "int32",
        "cu_prefix": "int32",
        "cu_suffix": "int32",
        "component": "int32",
        "proprio_mask": "bool",
        "action_dim_mask": "bool",
    }


def test_three_frames_and_a_horizon_of_eight(table: SampleTable) -> None:
    """An episode of four steps, from its third: two true actions, then the last one six times, masked."""
    (sample,) = (number for number, start in enumerate(STARTS) if start == (2, 2))
    batch = table.batch(0, [np.array([sample])], TOKENS)
    assert batch.actions[0, :, 0].tolist() == [-2002, -2003] + [-2003] * 6
    assert batch.action_mask[0].tolist() == [True] * 2 + [False] * 6


def test_actions_that_do_not_fit_the_cache_are_the_same(
    coded: CodedLake, table: SampleTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED_STEP_BYTES", 0)
    ids = [np.arange(25)]
    assert np.array_equal(SampleTable(coded.out).batch(0, ids, TOKENS).actions, table.batch(0, ids, TOKENS).actions)


def test_ids_by_split(table: SampleTable) -> None:
    assert table.ids(0).tolist() == list(range(21))
    assert table.ids(1).tolist() == [21, 22, 23, 24]
    assert table.column("source_episode")[[0, 24]].tolist() == [10, 16]


def test_pickling_drops_the_handles(table: SampleTable) -> None:
    """Lance does not survive a fork, and its handles are nobody else's."""
    table.batch(0, [np.array([1])], TOKENS)
    copy = pickle.loads(pickle.dumps(table))
    assert copy.__dict__ | {"card": None} == {
        "folder": table.folder, "card": None, "_video": None, "_samples": None, "_steps": None,
            "_cached_actions": None,
    }  # fmt: skip
    check(copy.batch(0, [np.array([7, 2])], TOKENS))


def test_a_copy_is_equal_and_shares_nothing(table: SampleTable) -> None:
    given = table.batch(3, [np.arange(5), np.array([7])], TOKENS)
    copy = given.copied()
    for field in fields(Batch):
        left, right = getattr(given, field.name), getattr(copy, field.name)
        assert np.array_equal(left, right), field.name
        if field.name != "step":
            assert right.flags.writeable and not np.shares_memory(left, right)


def test_an_image_of_another_size_is_refused(coded: CodedLake, tmp_path: Path) -> None:
    found = lance.dataset(str(coded.out / "samples.lance")).to_table()
    short = pa.array([b"abc"] * 25, pa.large_binary())
    place = found.schema.get_field_index("view_top")
    lance.write_dataset(found.set_column(place, "view_top", short), str(tmp_path / "samples.lance"))
    (tmp_path / "steps.lance").symlink_to(coded.out / "steps.lance")
    (tmp_path / "card.json").write_bytes((coded.out / "card.json").read_bytes())
    with pytest.raises(UserError, match="LOAD-001"):
        SampleTable(tmp_path).batch(0, [np.array([1])], TOKENS)
