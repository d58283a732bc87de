"""The gate: limits, the comparison with the champion, and what must hold for any figures."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.refs import EvalReport, TaskResult
from tasks.gate import ChampionScore, Decision, decide
from tasks.specs import GateSpec

GATE = GateSpec(min_score=0.8, min_task_score=0.5, margin=0.05)
CHAMPION = ChampionScore(version=3, score=0.9, suite="four", protocol="p1", simulator="s1")
RANK = {None: 0, "challenger": 1, "champion": 2}


def report_of(successes: tuple[int, ...] = (9, 9), score: float | None = None, **fields: Any) -> EvalReport:
    tasks = tuple(
        TaskResult(task=f"t{i}", n=10, k=k, safe=k, low=0.0, high=1.0, seconds=1.0) for i, k in enumerate(successes)
    )
    values: dict[str, Any] = {
        "uri": "evaluate/e/attempts/1", "fingerprint": "e", "suite": "four", "simulator": "s1",
        "num_episodes": 10 * len(tasks), "score": sum(successes) / (10 * len(tasks)) if score is None else score,
        "tasks": tasks, "collisions": 0, "limit_hits": 0, "non_finite": 0, "error": None, "baselines": (),
    }  # fmt: skip
    return EvalReport(**(values | fields))


def judge(report: EvalReport, gate: GateSpec = GATE, champion: ChampionScore | None = None) -> Decision:
    return decide(gate, report, champion, protocol="p1")


def test_first_version_that_passes_is_champion() -> None:
    decision = judge(report_of())
    assert (decision.alias, decision.sentence) == ("champion", "first version, all gates passed")
    assert all(check.passed for check in decision.checks)


@pytest.mark.parametrize(
    ("report", "failed"),
    [
        (report_of((7, 7)), "score"),
        (report_of((10, 10, 10, 4)), "weakest task"),
        (report_of(non_finite=1), "non-finite actions"),
        (report_of(collisions=1), "collisions"),
        (report_of(score=float("nan")), "score"),
    ],
)
def test_a_failed_limit_is_named_and_gives_no_alias(report: EvalReport, failed: str) -> None:
    decision = judge(report, replace(GATE, max_collisions=0))
    assert decision.alias is None
    assert [check.name for check in decision.checks if not check.passed] == [failed]
    assert failed in decision.sentence


def test_collisions_count_only_where_the_gate_limits_them() -> None:
    assert judge(report_of(collisions=7)).alias == "champion"


@pytest.mark.parametrize(("score", "alias"), [(0.95, "champion"), (0.85, "champion"), (0.84, "challenger")])
def test_the_margin_below_the_champion_still_passes(score: float, alias: str) -> None:
    assert judge(report_of(score=score), champion=CHAMPION).alias == alias


@pytest.mark.parametrize("field", ["suite", "protocol", "simulator"])
def test_another_world_is_not_compared(field: str) -> None:
    decision = judge(report_of((10, 10)), champion=replace(CHAMPION, **{field: "other"}))
    assert decision.alias == "challenger"
    assert f"not comparable with champion v3: another {field}" in decision.sentence


def test_the_cap_holds_even_for_a_perfect_first_version() -> None:
    assert judge(report_of((10, 10)), replace(GATE, max_alias="challenger")).alias == "challenger"


def test_without_tasks_the_score_stands_for_the_weakest() -> None:
    offline = report_of(score=1.4, tasks=(), error=0.5)
    assert judge(offline).alias == "champion"
    assert judge(replace(offline, score=0.4), replace(GATE, min_score=0.0)).alias is None


scores = st.floats(0, 2) | st.just(float("nan"))
gates = st.builds(
    GateSpec, min_score=st.floats(0, 1), min_task_score=st.floats(0, 1), margin=st.floats(0, 0.3),
    max_collisions=st.none() | st.integers(0, 3), max_alias=st.sampled_from(["champion", "challenger"]),
)  # fmt: skip
champions = st.none() | st.builds(
    ChampionScore, version=st.integers(1, 9), score=st.floats(0, 1), suite=st.sampled_from(["four", "two"]),
    protocol=st.sampled_from(["p1", "p2"]), simulator=st.sampled_from(["s1", "s2"]),
)  # fmt: skip
reports = st.builds(
    lambda successes, score, collisions, non_finite: report_of(
        tuple(successes), score, collisions=collisions, non_finite=non_finite
    ),
    st.lists(st.integers(0, 10), min_size=1, max_size=4), scores, st.integers(0, 3), st.integers(0, 1),
)  # fmt: skip


@given(gates, reports, champions)
def test_never_champion_when_a_check_fails(gate: GateSpec, report: EvalReport, champion: ChampionScore | None) -> None:
    decision = judge(report, gate, champion)
    if decision.alias == "champion":
        assert all(check.passed for check in decision.checks)
        assert gate.max_alias == "champion"
        assert report.non_finite == 0


@given(gates, reports, champions, st.floats(0, 1))
def test_a_higher_score_is_never_worth_less(
    gate: GateSpec, report: EvalReport, champion: ChampionScore | None, more: float
) -> None:
    better = replace(report, score=report.score + more)
    assert RANK[judge(better, gate, champion).alias] >= RANK[judge(report, gate, champion).alias]
