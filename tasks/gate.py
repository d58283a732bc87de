"""Decides what an evaluated policy may become: champion, challenger or nothing. Pure; nothing is moved here."""

from dataclasses import dataclass

from data_lake.refs import EvalReport
from tasks.specs import GateSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class ChampionScore:
    """What the champion of today scored, and in which world. `protocol` digests the suite's whole description."""

    version: int
    score: float
    suite: str
    protocol: str
    simulator: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """`value` against `limit`; `comparison` is `>=` or `<=`."""

    name: str
    value: float
    comparison: str
    limit: float
    passed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """`alias`: champion, challenger or None. `sentence` says why, for a person."""

    alias: str | None
    sentence: str
    checks: tuple[Check, ...]


def decide(gate: GateSpec, report: EvalReport, champion: ChampionScore | None, *, protocol: str) -> Decision:
    """What `report`, measured under `protocol`, entitles its policy to.

    A failed limit: nothing. Limits passed, but worse than the champion by more than `gate.margin`, or measured
    in another world than the champion, or capped by `gate.max_alias`: challenger. Otherwise champion.
    """
    limits = _limits(gate, report)
    failed = [check for check in limits if not check.passed]
    if failed:
        return Decision(alias=None, sentence=f"rejected: {'; '.join(map(_said, failed))}", checks=limits)
    if gate.max_alias != "champion":
        return Decision(
            alias=gate.max_alias,
            sentence=f"all limits passed; this recipe may be {gate.max_alias} at most",
            checks=limits,
        )
    if champion is None:
        return Decision(alias="champion", sentence=f"first version, {_praise(gate)}", checks=limits)
    differing = _world_differences(report, protocol, champion)
    if differing:
        sentence = f"not comparable with champion v{champion.version}: another {', '.join(differing)}"
        return Decision(alias="challenger", sentence=sentence, checks=limits)
    return _against(gate, report, champion, limits)


def _limits(gate: GateSpec, report: EvalReport) -> tuple[Check, ...]:
    rates = [task.k / task.n if task.n else 0.0 for task in report.tasks]
    checks = [
        _at_least("score", report.score, gate.min_score),
        _at_least("weakest task", min(rates, default=report.score), gate.min_task_score),
        _at_most("non-finite actions", report.non_finite, 0),
    ]
    if gate.max_collisions is not None:
        checks.append(_at_most("collisions", report.collisions, gate.max_collisions))
    return tuple(checks)


def _against(gate: GateSpec, report: EvalReport, champion: ChampionScore, limits: tuple[Check, ...]) -> Decision:
    check = _at_least(f"score against champion v{champion.version}", report.score, champion.score - gate.margin)
    checks = (*limits, check)
    compared = f"{report.score:.3g} against {champion.score:.3g} of champion v{champion.version}"
    if check.passed:
        return Decision(alias="champion", sentence=f"{_praise(gate)}: {compared}", checks=checks)
    return Decision(
        alias="challenger", sentence=f"worse than the champion by more than {gate.margin:g}: {compared}", checks=checks
    )


def _praise(gate: GateSpec) -> str:
    """What passing all limits is worth: a recipe for tests asks for no success at all."""
    return "all gates passed" if gate.min_score > 0 else "its gate asks for no success"


def _world_differences(report: EvalReport, protocol: str, champion: ChampionScore) -> list[str]:
    pairs = {
        "suite": (report.suite, champion.suite),
        "protocol": (protocol, champion.protocol),
        "simulator": (report.simulator, champion.simulator),
    }
    return [name for name, (ours, theirs) in pairs.items() if ours != theirs]


def _at_least(name: str, value: float, limit: float) -> Check:
    return Check(name=name, value=value, comparison=">=", limit=limit, passed=value >= limit)


def _at_most(name: str, value: float, limit: float) -> Check:
    return Check(name=name, value=value, comparison="<=", limit=limit, passed=value <= limit)


def _said(check: Check) -> str:
    return f"{check.name} {check.value:.3g}, needs {check.comparison} {check.limit:g}"
