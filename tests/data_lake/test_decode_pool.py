"""Batches that a cluster makes are those that threads make, whatever dies meanwhile; nothing is left of those that
nobody takes. One process sees it all: Ray joins one cluster per process, and one takes seconds to begin."""

from typing import Any

import pytest

from data_lake.decode_pool import cluster_for
from errors import UserError
from tests.data_lake.test_cluster import run


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("pool"), module="pool_scripts")


@pytest.mark.slow
def test_the_same_batches_in_the_same_order(seen: dict[str, Any]) -> None:
    """Both tiers, uniform and in spans, from the beginning and resumed, and shared by two ranks."""
    assert len(seen["compared"]) == 9
    assert seen["compared"] == {
        asked: [True, 3 if "resumed" in asked or "ranks" in asked else 8] for asked in seen["compared"]
    }


@pytest.mark.slow
def test_the_same_batches_when_a_node_dies_over_one(seen: dict[str, Any]) -> None:
    assert seen["died"] == {"killed": 1, "same": True, "num": 8}


@pytest.mark.slow
def test_an_error_says_what_it_says_here(seen: dict[str, Any]) -> None:
    here, there = seen["refused"][:2], seen["refused"][2:]
    assert here == there
    assert [error[0] for error in here] == ["DECODE-002", "PACK-002"]
    assert "file 3" in here[0][2]


@pytest.mark.slow
def test_never_more_in_flight_than_the_bytes_allow(seen: dict[str, Any]) -> None:
    """Values that have been dropped are freed."""
    assert seen["bounded"].pop("most") <= 32 / 8 + 1  # the one that is being handed over counts once more
    assert seen["bounded"] == {"right": True, "num": 30}


@pytest.mark.slow
def test_left_early_it_leaves_nothing_running(seen: dict[str, Any]) -> None:
    closed = seen["closed"]
    assert closed["closed_s"] < 60 and closed["free_s"] < 120  # what was under way would have taken ten minutes
    assert closed["again"] == list(range(15))
    assert closed["left"] == {"threads": [], "joined": False}


@pytest.mark.slow
def test_what_is_held_outlives_the_cluster_and_who_uses_it_next(seen: dict[str, Any]) -> None:
    assert seen["closed"]["kept"] == [100, 101, 102, 103]


def test_a_profile_names_threads_or_a_cluster() -> None:
    assert cluster_for("threads", "here:1") == ""
    assert cluster_for("ray", "here:1") == "here:1"
    for decode, address in (("ray", ""), ("rai", "here:1")):
        with pytest.raises(UserError, match=f"LOAD-002.*{decode}"):
            cluster_for(decode, address)
