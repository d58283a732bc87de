"""Counting outcomes: intervals by head, each episode once, who is filmed."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_core.specs import EvaluateSpec, TaskSpec
from tasks.outcomes import merged, safety, seeds_of, task_results, to_film, wilson

SUITE = EvaluateSpec(
    suite="s",
    scene=None,
    tasks=(TaskSpec(name="open", instruction="a"), TaskSpec(name="close", instruction="b")),
    episodes_per_task=3,
    first_seed=100,
    execution_horizon=8,
    denoise_steps=5,
    block_size=2,
    seed=0,
)


def episode(seed: int, *, success: bool = True, **changes: Any) -> dict[str, Any]:
    told = {"success": success, "safe": success, "steps": 40, "collisions": 0, "limit_hits": 0, "non_finite": 0}
    return {"seed": seed, "other_goal": None, "executed": [], **told, **changes}


# 27 of 30: centre (0.9 + 3.8416/60) / (1 + 3.8416/30) = 0.8546, half 1.96/1.128 * sqrt(0.09/30 + 3.8416/3600) = 0.1109
@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(27, 30, 0.744, 0.965), (0, 48, 0.0, 0.074), (48, 48, 0.926, 1.0), (5, 10, 0.237, 0.763), (0, 0, 0.0, 1.0)],
)
def test_wilson_by_head(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=6e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_mirrors(counted: tuple[int, int]) -> None:
    k, n = counted
    low, high = wilson(k, n)
    assert 0 <= low <= k / n + 1e-12
    assert k / n - 1e-12 <= high <= 1
    assert wilson(n - k, n) == pytest.approx((1 - high, 1 - low))


def blocks() -> list[tuple[int, list[dict[str, Any]]]]:
    return [
        (task, [episode(seed, success=task == 0) for seed in seeds]) for task in (1, 0) for seeds in ([102], [100, 101])
    ]


@given(st.permutations(range(4)))
def test_merging_does_not_depend_on_who_finished_first(order: list[int]) -> None:
    found = merged(SUITE, [blocks()[index] for index in order])
    assert found == merged(SUITE, blocks())
    assert [(e["task"], e["seed"]) for e in found] == [(n, s) for n in ("open", "close") for s in (100, 101, 102)]


@pytest.mark.parametrize("fault", ["twice", "missing", "foreign"])
def test_each_episode_counts_once(fault: str) -> None:
    given_blocks = blocks()
    if fault == "twice":
        given_blocks.append((0, [episode(100)]))
    elif fault == "missing":
        given_blocks.pop()
    else:
        given_blocks.append((1, [episode(999)]))
    with pytest.raises(RuntimeError):
        merged(SUITE, given_blocks)


def test_results_per_task() -> None:
    found = merged(SUITE, blocks())
    found[0] |= {"safe": False, "collisions": 7}
    one, two = task_results(SUITE, found, control_hz=80.0)
    assert (one.task, one.n, one.k, one.safe, one.seconds) == ("open", 3, 3, 2, 0.5)
    assert (two.task, two.n, two.k) == ("close", 3, 0)
    assert safety(found)["collisions"] == {"episodes": 1, "steps": 7}
    assert safety(found)["non_finite"] == {"episodes": 0, "steps": 0}


def test_failures_are_filmed_first_and_tasks_take_turns() -> None:
    found = [
        episode(seed, success=success, task_index=task)
        for task, seed, success in [(0, 1, False), (0, 2, False), (0, 3, True), (1, 1, False), (1, 2, True)]
    ]
    chosen = [(e["task_index"], e["seed"], e["success"]) for e in to_film(found, 2)]
    assert chosen == [(0, 1, False), (1, 1, False), (0, 3, True), (1, 2, True)]
    assert to_film(found, 0) == []
    assert len(to_film(found[:2], 5)) == 2


def test_seeds_of_a_suite() -> None:
    assert list(seeds_of(replace(SUITE, first_seed=5))) == [5, 6, 7]
