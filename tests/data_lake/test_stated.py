"""Stated statistics against rows: numpy is the oracle, and what it says is never contradicted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from data_lake.sources import open_source
from data_lake.sources.episode import Feature
from data_lake.stated import Column, Columns, dimension_name, disagreements, hardly_moving, misplaced
from data_lake.statistics import Moments
from tests.data_lake.recordings import QUANTILES, write_v2, write_v3

SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=40)
ROWS = arrays(np.float32, SHAPES, elements=st.floats(-1e4, 1e4, width=32))


def numpy_says(rows: np.ndarray) -> dict[str, Any]:
    rows = rows.astype(np.float64)
    said = {"min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0)}
    said |= {key: np.quantile(rows, share, axis=0) for key, share in QUANTILES.items()}
    return {key: value.tolist() for key, value in said.items()} | {"count": [len(rows)]}


@given(rows=ROWS)
def test_what_numpy_says_is_true(rows: np.ndarray) -> None:
    assert list(disagreements("a", numpy_says(rows), Moments.of(rows))) == []
    sample = numpy_says(rows) | {"std": rows.astype(np.float64).std(0, ddof=1).tolist()}
    assert list(disagreements("a", sample, Moments.of(rows))) == []


@given(rows=ROWS, key=st.sampled_from(["min", "max", "mean", "std"]), data=st.data())
def test_what_is_off_is_said(rows: np.ndarray, key: str, data: st.DataObject) -> None:
    dimension = data.draw(st.integers(0, rows.shape[1] - 1))
    said = numpy_says(rows)
    said[key][dimension] += 1 + 2 * float(np.abs(rows).max())
    texts = list(disagreements("a", said, Moments.of(rows)))
    assert len(texts) == 1 and texts[0].startswith(f"a[{dimension}] {key} ")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"count": [7]}, "a count [7], there are 4 rows"),
        ({"mean": [0.0]}, "a mean is not 2 numbers"),
        ({"max": "high"}, "a max is not 2 numbers"),
        ({"max": [float("nan"), 0.0]}, "a[0] max nan, of the rows 0"),
    ],
)
def test_odd_statistics(said: dict[str, Any], text: str) -> None:
    assert list(disagreements("a", said, Moments.of(np.zeros((4, 2))))) == [text]


@given(rows=ROWS)
def test_true_quantiles_are_in_their_place(rows: np.ndarray) -> None:
    assert list(misplaced("a", numpy_says(rows), Column.of(rows, Moments.of(rows)))) == []


def test_an_average_of_quantiles_is_none() -> None:
    """D21: 99 rows of zeros and 101 from 0 to 100; the mean of their q99 is half the truth."""
    parts = [np.zeros((99, 1)), np.linspace(0, 100, 101)[:, None]]
    rows = np.concatenate(parts)
    column = Column.of(rows, Moments.of(rows))
    averaged = float(np.average([np.quantile(part, 0.99) for part in parts], weights=[99, 101]))
    assert averaged == pytest.approx(50, abs=1) and np.quantile(rows, 0.99) == pytest.approx(98, abs=0.1)
    assert list(misplaced("a", {"q99": [averaged]}, column)) == ["a[0] q99 49.995, of the rows 98.01"]
    assert list(misplaced("a", {"q99": [98.0]}, column)) == []
    for odd in (float("nan"), float("inf")):
        assert list(misplaced("a", {"q99": [odd]}, column)) == ["a q99 is not finite"]


def test_a_dimension_that_hardly_moves() -> None:
    """D23: 100 rows of 1.5690 ± 0.0005 beside one that moves and one that stands still."""
    draw = np.random.default_rng(0)
    rows = np.stack([1.569 + 0.0005 * draw.uniform(-1, 1, 100), draw.uniform(-1, 1, 100), np.ones(100)], axis=1)
    q01_D, q99_D = np.quantile(rows, [0.01, 0.99], axis=0)
    found = list(hardly_moving(Moments.of(rows), q01_D, q99_D))
    assert [dimension for dimension, _ in found] == [0]
    zero = 2 * (0 - q01_D[0]) / (q99_D[0] - q01_D[0]) - 1
    assert found[0][1] == pytest.approx(abs(zero))


def test_a_rare_spike_is_found() -> None:
    rows = np.concatenate([np.linspace(-0.001, 0.001, 999), [5.0]])[:, None]
    q01_D, q99_D = np.quantile(rows, [0.01, 0.99], axis=0)
    assert [dimension for dimension, _ in hardly_moving(Moments.of(rows), q01_D, q99_D)] == [0]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["x", "y"], "action[1] (y)"),
        ([["x", "y"]], "action[1] (y)"),
        ({"motors": ["x", "y"]}, "action[1] (y)"),
        (["x"], "action[1]"),
        (None, "action[1]"),
        ("xy", "action[1]"),
    ],
)
def test_names_of_dimensions(names: Any, shown: str, tmp_path: Path) -> None:
    card = open_source(write_v2(tmp_path / "v2", cameras=())).card
    named = replace(card, features={"action": Feature(dtype="float32", shape=(2,), names=names)})
    assert dimension_name(named, "action", 1) == shown


@pytest.mark.parametrize("layout", ["v2.1", "v3.0"])
def test_statistics_of_sound_folders_are_true(layout: str, tmp_path: Path) -> None:
    v2 = write_v2(tmp_path / "v2", cameras=())
    source = open_source(v2 if layout == "v2.1" else write_v3(tmp_path / "v3", v2, cameras=()))
    columns = Columns()
    for episode in source.episodes():
        assert episode.statistics["action"]["count"] == [episode.length]
        assert columns.add(episode) == []
    assert [item.code for item in columns.findings(source.card)] == (["LAKE-143"] if layout == "v2.1" else [])


def test_statistics_of_more_than_was_read_are_not_contradicted(tmp_path: Path) -> None:
    """Where an episode's rows are missing, those of the others cannot prove the whole wrong."""
    v3 = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2", cameras=()), cameras=())
    source, columns = open_source(v3), Columns()
    for episode in source.episodes():
        columns.add(replace(episode, rows=None) if episode.source_episode == 1 else episode)
    assert columns.findings(source.card) == []
