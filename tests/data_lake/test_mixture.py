"""Mixtures: each sample of a batch is its own component's, padded and masked; weights and ranks."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.loader import Loader
from data_lake.mixture import MixedSamples, open_samples, sample_folders
from data_lake.pack import pack_runs, runs_of
from data_lake.packing import TokenCount
from data_lake.samples import SampleTable
from data_lake.specs import CameraSlot
from errors import UserError
from tests.data_lake.lake_fixture import RECORDED, VIEWS
from tests.data_lake.mixed_lake import SECOND, made, mixed, two_robots

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=8)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> MixedSamples:
    return two_robots(tmp_path_factory.mktemp("lake"))


@given(rows=st.lists(st.lists(st.integers(0, 32), max_size=8), max_size=4))
@settings(max_examples=40, deadline=None)
def test_a_batch_is_what_its_components_would_give(samples: MixedSamples, rows: list[list[int]]) -> None:
    """Sample by sample, against a batch of that one sample from its own table."""
    batch = samples.batch(3, [np.array(row, np.int64) for row in rows], TOKENS)
    words = samples.card["tokenizer"]["words"]
    assert batch.sample_ids.tolist() == [id_ for row in rows for id_ in row] and batch.step == 3
    assert batch.row_of_sample.tolist() == [number for number, row in enumerate(rows) for _ in row]
    text_ends = np.cumsum(batch.text_lengths)
    for n, id_ in enumerate(batch.sample_ids.tolist()):
        table = samples.tables[int(id_ >= 25)]
        alone = table.batch(0, [np.array([id_ - 25 * (id_ >= 25)])], TOKENS)
        dims = alone.proprio.shape[1]
        assert batch.component[n] == (id_ >= 25)
        assert batch.proprio[n].tolist() == [*alone.proprio[0].tolist(), *[0] * (6 - dims)]
        assert (
            batch.proprio_mask[n].tolist() == batch.action_dim_mask[n].tolist() == [True] * dims + [False] * (6 - dims)
        )
        assert np.array_equal(batch.actions[n, :, :dims], alone.actions[0]) and not batch.actions[n, :, dims:].any()
        assert np.array_equal(batch.action_mask[n], alone.action_mask[0])
        own = batch.image_sample == n
        assert np.array_equal(batch.images[own], alone.images) and np.array_equal(
            batch.image_view[own], alone.image_view
        )
        text = batch.text_tokens[text_ends[n] - batch.text_lengths[n] : text_ends[n]]
        assert [words[t] for t in text] == [table.card["tokenizer"]["words"][t] for t in alone.text_tokens]
        assert batch.prefix_lengths[n] == alone.prefix_lengths[0]
    assert np.array_equal(np.diff(batch.cu_prefix), batch.prefix_lengths)
    assert np.array_equal(np.diff(batch.cu_suffix), np.full(len(batch.sample_ids), 8))


def test_types_are_those_of_one_table(samples: MixedSamples) -> None:
    ids = [np.array([3, 27, 1])]
    one, many = samples.tables[0].batch(0, [np.array([3])], TOKENS), samples.batch(0, ids, TOKENS)
    for name in type(one).__slots__:
        if name != "step":
            assert getattr(many, name).dtype == getattr(one, name).dtype, name


def test_columns_go_on_from_component_to_component(samples: MixedSamples) -> None:
    assert samples.ids(1).tolist() == [21, 22, 23, 24] and len(samples.ids(0)) == 29
    texts = [samples.card["instructions"][each] for each in samples.column("task_index")]
    assert texts[21] == RECORDED[6].instruction and texts[25:] == ["lift the lid"] * 4 + ["open it"] * 4
    assert np.unique(samples.column("episode_index")).tolist() == list(range(9))


def test_a_mixture_weighs_and_ranks_share_it(samples: MixedSamples) -> None:
    """The arm twice, the cart every second epoch: in two epochs each sample four times and once."""
    loader = loader_of(samples, (2.0, 0.5))
    steps = loader.packing.num_rows  # of two rows: two epochs
    whole = np.concatenate([loader.batch(step).sample_ids for step in range(steps)])
    assert np.bincount(whole).tolist() == [4] * 21 + [0] * 4 + [1] * 8
    shares = [loader.batch(step, rank, 2).sample_ids for step in range(steps) for rank in range(2)]
    assert sorted(np.concatenate(shares).tolist()) == sorted(whole.tolist())
    copy = pickle.loads(pickle.dumps(loader))
    assert np.array_equal(copy.batch(5).images, loader.batch(5).images)


def loader_of(samples: MixedSamples, weights: tuple[float, ...]) -> Loader:
    """As the pack stage packs."""
    ends = samples.ends.tolist()
    runs = []
    for first, table in zip([0, *ends], samples.tables, strict=False):
        ids = table.ids(0)
        batch = table.batch(0, [ids], TOKENS)
        runs.append(
            runs_of(ids + first, TOKENS.length(np.bincount(batch.image_sample, minlength=len(ids)), batch.text_lengths))
        )
    component = np.repeat(np.arange(len(runs)), [len(each[0]) for each in runs])
    firsts, counts, lengths = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
    packing = pack_runs(firsts, counts, lengths, capacity=64, tokens=TOKENS, component_U=component, weights=weights)
    return Loader(samples.folder, packing, seed=0, rows_per_step=2)


def test_a_component_that_is_gone_is_named(tmp_path: Path) -> None:
    samples = mixed(tmp_path, made(tmp_path, "a", SECOND))
    assert sample_folders(samples.folder) == [tmp_path / "preprocess/a"]
    (tmp_path / "preprocess/a").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="(?s)PACK-012.*preprocess/a"):
        open_samples(samples.folder)


def test_a_declared_absence_of_a_camera_is_no_mistake(tmp_path: Path) -> None:
    """Without the declaration it is one (PREP-003)."""
    inputs = {"views": [*VIEWS, "wrist"]}
    with pytest.raises(UserError, match="PREP-003"):
        made(tmp_path, "unsaid", SECOND, inputs=inputs)
    uri = made(tmp_path, "said", SECOND, inputs=inputs, cameras=(CameraSlot(slot="wrist", camera=None),))
    table = SampleTable(tmp_path / uri)
    assert table.card["cameras"] == {"wrist": None} and table.views == [*VIEWS, "wrist"]
    assert table.batch(0, [table.ids(0)[:1]], TOKENS).image_view.tolist() == [0, 1]
