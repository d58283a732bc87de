"""Mixtures: each sample of a batch is its own component's, padded and masked; statistics are of each robot alone."""

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.loader import Loader
from data_lake.mixture import Component, MixedSamples, open_samples, sample_folders, write_mixture
from data_lake.mixture_card import mixed_card
from data_lake.packing import TokenCount, pack_runs, runs_of
from data_lake.preprocess import preprocess_view
from data_lake.samples import SampleTable
from data_lake.specs import CameraSlot
from data_lake.view import read_view
from errors import UserError
from tests.data_lake import model_functions
from tests.data_lake.lake_fixture import RECORDED, VIEWS, Recorded, request_for, write_dataset, write_view

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=8)
SECOND = [Recorded(length=7, instruction="lift the lid"), Recorded(length=8, views=(), instruction="open it")]


def made(
    lake: Path, name: str, recorded: list[Recorded], *, dim: int = 4, embodiment: str = "arm", **changes: Any
) -> str:
    """What preprocessing makes of fabricated recordings, in a slot of the lake; its uri."""
    dataset, view_folder, uri = lake / "datasets" / name, lake / "ingest" / name, f"preprocess/{name}"
    write_view(view_folder, recorded, write_dataset(dataset, recorded, dim=dim))
    found = json.loads((view_folder / "episodes.json").read_text()) | {"embodiment": embodiment}
    (view_folder / "episodes.json").write_text(json.dumps(found))
    (lake / uri).mkdir(parents=True)
    request = request_for(layout={"delta_mask": [False] * dim}, **changes)
    preprocess_view(read_view(view_folder), dataset, request, lake / uri)
    return uri


def mixed(lake: Path, *uris: str, slot: str = "m") -> MixedSamples:
    """Vocabularies of words as model_functions has them: sorted, without marks."""
    tables = [SampleTable(lake / uri) for uri in uris]
    words = sorted({word for table in tables for word in table.card["tokenizer"]["words"]})
    maps = [[words.index(word) for word in table.card["tokenizer"]["words"]] for table in tables]
    card = mixed_card(tables, uris, {"kind": "words", "words": words}, as_trained)
    folder = lake / "mix" / slot / "attempts" / "1"
    folder.mkdir(parents=True)
    components = [Component(name=uri, uri=uri, token_map=ids) for uri, ids in zip(uris, maps, strict=True)]
    write_mixture(folder, components, card)
    found = open_samples(folder)
    assert isinstance(found, MixedSamples)
    return found


def as_trained(layout: dict[str, Any]) -> Any:
    return partial(model_functions.training_actions, robot=model_functions.robot(layout))


@pytest.fixture(scope="module")
def two_robots(tmp_path_factory: pytest.TempPathFactory) -> MixedSamples:
    """25 samples of an arm with 4 dimensions, of which the last 4 are held out, and 8 of a cart with 6 dimensions."""
    lake = tmp_path_factory.mktemp("lake")
    first = made(lake, "arm", RECORDED, heldout_episodes=(16,))
    return mixed(lake, first, made(lake, "cart", SECOND, dim=6, embodiment="cart"))


@given(rows=st.lists(st.lists(st.integers(0, 32), max_size=8), max_size=4))
@settings(max_examples=40, deadline=None)
def test_a_batch_is_what_its_components_would_give(two_robots: MixedSamples, rows: list[list[int]]) -> None:
    """Sample by sample, against a batch of that one sample from its own table."""
    batch = two_robots.batch(3, [np.array(row, np.int64) for row in rows], TOKENS)
    words = two_robots.card["tokenizer"]["words"]
    assert batch.sample_ids.tolist() == [id_ for row in rows for id_ in row] and batch.step == 3
    assert batch.row_of_sample.tolist() == [number for number, row in enumerate(rows) for _ in row]
    text_ends = np.cumsum(batch.text_lengths)
    for n, id_ in enumerate(batch.sample_ids.tolist()):
        table = two_robots.tables[int(id_ >= 25)]
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


def test_types_are_those_of_one_table(two_robots: MixedSamples) -> None:
    ids = [np.array([3, 27, 1])]
    one, many = two_robots.tables[0].batch(0, [np.array([3])], TOKENS), two_robots.batch(0, ids, TOKENS)
    for name in type(one).__slots__:
        if name != "step":
            assert getattr(many, name).dtype == getattr(one, name).dtype, name


def test_columns_go_on_from_component_to_component(two_robots: MixedSamples) -> None:
    assert two_robots.ids(1).tolist() == [21, 22, 23, 24] and len(two_robots.ids(0)) == 29
    texts = [two_robots.card["instructions"][each] for each in two_robots.column("task_index")]
    assert texts[21] == RECORDED[6].instruction and texts[25:] == ["lift the lid"] * 4 + ["open it"] * 4
    assert np.unique(two_robots.column("episode_index")).tolist() == list(range(9))


def test_statistics_are_of_each_robot_before_padding(two_robots: MixedSamples) -> None:
    card = two_robots.card
    assert card["embodiment"] is None and (card["proprio_dim"], card["action_dim"]) == (6, 6)
    assert {name: len(part["stats"]["action"]["mean"]) for name, part in card["robots"].items()} == {
        "arm": 4,
        "cart": 6,
    }
    for table in two_robots.tables:
        assert card["robots"][table.card["embodiment"]]["stats"] == table.card["stats"]


def test_components_of_one_robot_have_the_statistics_of_all_their_rows(tmp_path: Path) -> None:
    """The oracle: both sets of recordings ingested as one."""
    parts = made(tmp_path, "a", RECORDED[:4], heldout_episodes=(13,)), made(tmp_path, "b", RECORDED[4:])
    found = mixed(tmp_path, *parts).card
    rows = [table.step_columns("proprio", "action") for table in (SampleTable(tmp_path / each) for each in parts)]
    learnt = {name: np.concatenate([rows[0][at][:19], rows[1][at]]) for at, name in enumerate(("proprio", "action"))}
    for name, values in learnt.items():  # 19 steps of the first three episodes; the fourth is held out
        assert found["stats"][name]["count"] == 19 + 16
        np.testing.assert_allclose(found["stats"][name]["mean"], values.astype(float).mean(0))
        np.testing.assert_allclose(found["stats"][name]["q99"], np.quantile(values.astype(float), 0.99, axis=0))
    assert found["embodiment"] == "arm" and [each["name"] for each in found["components"]] == list(parts)


def test_a_mixture_weighs_and_ranks_share_it(two_robots: MixedSamples) -> None:
    """The arm twice, the cart every second epoch: in two epochs each sample four times and once."""
    loader = loader_of(two_robots, (2.0, 0.5))
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


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"inputs": {"image_size": 8}}, "policy.inputs"),
        ({"embodiment": "arm", "dim": 6}, "layout"),
        ({"inputs": {"state": "text"}}, "policy.inputs"),
    ],
)
def test_unlike_components_are_refused_by_name(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    parts = made(tmp_path, "a", SECOND), made(tmp_path, "b", SECOND, **changes)
    with pytest.raises(UserError, match=f"(?s)PACK-011.*{what}.*preprocess/b"):
        mixed(tmp_path, *parts)


def test_the_state_as_text_cannot_be_shared(tmp_path: Path) -> None:
    parts = [made(tmp_path, name, SECOND, inputs={"state": "text"}) for name in ("a", "b")]
    with pytest.raises(UserError, match="(?s)PACK-011.*state as text"):
        mixed(tmp_path, *parts)


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
