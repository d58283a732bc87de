"""Registers an evaluated export: files verified, gate asked, aliases moved, the move written to the audit log."""

import math
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_lake import identity
from data_lake.refs import EvalReport, ExportRef, ModelVersionRef, Ref, to_json
from data_lake.store import Attempt, now
from tasks.gate import ChampionScore, Check, Decision, decide
from tasks.lineage import Record, lineage, recipe_of
from tasks.promotion import Move, Standing, Version, move, settle
from tasks.registry import Registry, connect, package, steadily
from tasks.report import build_report
from tasks.runtime import Note, Runtime, Summary
from tasks.specs import RegisterStage


def register(
    spec: RegisterStage, export: ExportRef, report: EvalReport, *, out: Attempt, runtime: Runtime
) -> ModelVersionRef:
    """The version of this export in the registry, with the alias that the gate gave it (None when it said no).

    Everything outside the lake is keyed by the slot's fingerprint, so that a repeat after a crash makes
    nothing twice. Raises Transient while the registry does not answer.
    """
    clock = time.monotonic()
    registry = connect(runtime.lake, runtime.home)
    chain = lineage(runtime.lake, (export, report))
    protocol = protocol_of(chain)
    runs = steadily(lambda: _tracked(registry, chain, report, runtime))
    tags = _tags(chain, export, report, protocol)
    published = steadily(lambda: _published(registry, spec.name, export, chain, runs["train"], tags, out, runtime))
    decision = steadily(lambda: _promoted(registry, spec, report, protocol, published, out, runtime))
    steadily(lambda: registry.describe(published, decision.sentence, decision.alias))
    summary = _summary(published, decision)
    ref = ModelVersionRef(
        uri=out.uri,
        fingerprint=out.fingerprint,
        name=spec.name,
        version=published.number,
        alias=decision.alias,
        accepted=decision.alias == spec.gate.max_alias,
        decision=decision.sentence,
    )
    this = _record_to_be(ref, spec, (export, report), summary, chain["evaluate"], time.monotonic() - clock)
    page = build_report(runtime.lake, {**chain, "register": this})
    steadily(lambda: registry.client.log_text(runs["evaluate"], page, "report.html"))
    runtime.report(summary)
    return ref


def _record_to_be(
    ref: ModelVersionRef, spec: RegisterStage, inputs: tuple[Ref, ...], summary: Summary, like: Record, seconds: float
) -> Record:
    """What the record of this stage will say, as far as a report reads it; it is written after the stage."""
    return {
        "stage": "register",
        "label": like["label"],
        "fingerprint": ref.fingerprint,
        "identity": {"spec": identity.canonical(spec), "inputs": [each.fingerprint for each in inputs]},
        "ref": to_json(ref),
        "summary": {"line": summary.line, "table": summary.table},
        "provenance": {**like["provenance"], "seconds": seconds, "finished": now()},
    }


def protocol_of(chain: Mapping[str, Record]) -> str:
    """Digest of everything that a score depends on beside the policy: the suite's whole description.

    Offline, where no simulator gives the episodes, the preprocessed samples belong to it.
    """
    record = chain["evaluate"]
    described: dict[str, Any] = {"spec": record["identity"]["spec"]}
    if record["identity"]["spec"]["evaluate"]["scene"] is None:
        described["samples"] = chain["preprocess"]["fingerprint"]
    return identity.fingerprint(described)


def _tracked(registry: Registry, chain: Mapping[str, Record], report: EvalReport, runtime: Runtime) -> dict[str, str]:
    """Complete the runs of the train and the evaluate slot; their ids."""
    run_ids = {}
    for stage in ("train", "evaluate"):
        record = chain[stage]
        run_id = registry.run_of(f"{stage}/{record['fingerprint']}", f"{record['label']} {stage}")
        registry.log_settings(run_id, recipe_of({name: chain[name] for name in _up_to(chain, stage)}))
        _log_dataset(registry, run_id, chain, "training" if stage == "train" else "evaluation")
        run_ids[stage] = run_id
    registry.log_figures(run_ids["evaluate"], {name: v for name, v in _figures(report).items() if math.isfinite(v)})
    folder = runtime.local(report.uri)
    registry.log_files(run_ids["evaluate"], sorted(folder.glob("*.json")), "")
    registry.log_files(run_ids["evaluate"], sorted(folder.rglob("*.mp4")), "videos")
    registry.client.set_terminated(run_ids["evaluate"])
    return run_ids


def _up_to(chain: Mapping[str, Record], stage: str) -> list[str]:
    names = list(chain)
    return names[: names.index(stage) + 1]


def _log_dataset(registry: Registry, run_id: str, chain: Mapping[str, Record], context: str) -> None:
    for ref in (record["ref"] for record in chain.values() if record["stage"] == "ingest"):
        registry.log_dataset(
            run_id,
            name=ref["dataset"],
            version=ref["version"],
            digest=ref["fingerprint"],
            context=context,
            counts={name: ref[name] for name in ("num_episodes", "num_quarantined", "num_frames")},
        )


def _figures(report: EvalReport) -> dict[str, float]:
    safety = {"collisions": report.collisions, "limit_hits": report.limit_hits, "non_finite": report.non_finite}
    success = {f"success/{task.task}": task.k / task.n for task in report.tasks if task.n}
    errors = {} if report.error is None else {"error": report.error, **{f"error/{n}": e for n, e in report.baselines}}
    return {"score": report.score, **success, **safety, **errors}


def _tags(chain: Mapping[str, Record], export: ExportRef, report: EvalReport, protocol: str) -> dict[str, str]:
    dataset = chain["ingest"]["ref"]
    return {
        "export": export.fingerprint,
        "evaluation": report.fingerprint,
        "score": repr(report.score),
        "suite": report.suite,
        "protocol": protocol,
        "simulator": report.simulator,
        "dataset": f"{dataset['dataset']}@{dataset['version']}",
        "precision": export.precision,
    }


def _published(
    registry: Registry,
    name: str,
    export: ExportRef,
    chain: Mapping[str, Record],
    run_id: str,
    tags: Mapping[str, str],
    out: Attempt,
    runtime: Runtime,
) -> Version:
    if found := registry.version_of(name, out.fingerprint):
        return found
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        steps = chain["evaluate"]["identity"]["spec"]["evaluate"]["denoise_steps"]
        package(runtime.local(export.uri), model, denoise_steps=steps)
        return registry.publish(name, out.fingerprint, model, run_id=run_id, tags=tags, check=out.check)


def _promoted(
    registry: Registry,
    spec: RegisterStage,
    report: EvalReport,
    protocol: str,
    published: Version,
    out: Attempt,
    runtime: Runtime,
) -> Decision:
    """Ask the gate and move the alias; an earlier attempt's move stands."""
    alone = decide(spec.gate, report, None, protocol=protocol)
    if alone.alias is None:
        return alone
    decisions: list[Decision] = []

    def choose(found: Standing) -> Move:
        out.check()
        before = found.champions[-1] if found.champions else None
        versions = {version.number: version for version in registry.versions(spec.name)}
        score = _score(versions[before]) if before else None
        decisions.append(decide(spec.gate, report, score, protocol=protocol))
        return _move(
            published, decisions[-1], before if decisions[-1].alias == "champion" else found.challenger, runtime
        )

    known = {(version.number, version.fingerprint) for version in registry.versions(spec.name)}
    strange = {
        each.version for each in registry.audit(spec.name).read() if (each.version, each.fingerprint) not in known
    }
    if strange:
        told = ", ".join(f"v{number}" for number in sorted(strange))
        runtime.report(Note(text=f"{told} of {spec.name} are in another registry and are not compared with"))
    for earlier in registry.audit(spec.name).read():
        if earlier.fingerprint == published.fingerprint and earlier.action != "rollback":
            settle(registry, spec.name)
            checks = tuple(Check(name=n, value=v, comparison=c, limit=m, passed=p) for n, v, c, m, p in earlier.checks)
            return Decision(alias=earlier.action, sentence=earlier.why, checks=checks)
    move(registry, spec.name, choose)
    return decisions[-1]


def _score(version: Version) -> ChampionScore:
    tags = version.tags
    return ChampionScore(
        version=version.number,
        score=float(tags["score"]),
        suite=tags["suite"],
        protocol=tags["protocol"],
        simulator=tags["simulator"],
    )


def _move(published: Version, decision: Decision, before: int | None, runtime: Runtime) -> Move:
    return Move(
        action=decision.alias or "",
        version=published.number,
        fingerprint=published.fingerprint,
        before=before,
        who=f"run {runtime.run_id}",
        why=decision.sentence,
        at=now(),
        evaluation=published.tags["evaluation"],
        checks=tuple((c.name, c.value, c.comparison, c.limit, c.passed) for c in decision.checks),
    )


def _summary(published: Version, decision: Decision) -> Summary:
    arrow = f" → {decision.alias}" if decision.alias else ""
    table = [
        {"check": c.name, "value": c.value, "needs": f"{c.comparison} {c.limit:g}", "passed": c.passed}
        for c in decision.checks
    ]
    return Summary(line=f"{published.name} v{published.number}{arrow}  ({decision.sentence})", table=table)
