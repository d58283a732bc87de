"""`doctor`, `ingest` and `report`: looking at data, taking it in, and the page about a loop."""

import getpass
import shlex
import uuid
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from data_lake.objects import is_object_uri
from data_lake.words import counted
from errors import UserError
from flows.commands.lake import short
from flows.commands.run import Order, look_at_sources
from flows.places import Places
from flows.plan import make_plan
from flows.profile import load_profile
from flows.recipe import read_spec
from flows.screen import DONE, FAILED, Screen
from flows.session import look_at_files

if TYPE_CHECKING:
    from data_lake.store import Slot
    from tasks.build import Built

SHOWN_FINDINGS = 40
Reading = tuple[str, tuple[str, ...]]  # format, `ingest.read.…` settings
SHOWN_TASKS = 8


def doctor(
    where: Places, source: str, reading: Reading, screen: Screen, *, deep: bool = False, repair: bool = False
) -> int:
    """Check a source folder, or a data set of the lake by its name. 1 when there is an error.

    deep: decode every frame. repair: first mend the folder's metadata where its rows prove what is right.
    """
    from data_lake.doctor import doctor as examine
    from data_lake.sources.remote import source_folder

    if repair and is_object_uri(source):
        raise UserError(
            "LAKE-175",
            "metadata on an object store cannot be mended in place",
            where=source,
            next_step="copy the source into a folder and mend it there",
        )
    repaired = _repair(Path(source), screen) if repair else None
    folder = str(source_folder(source, where.home, screen.line)) if is_object_uri(source) else source
    videos = "every video frame" if deep else "every video file (its frames are decoded only with --deep)"
    screen.line(f"checking {source}: layout, metadata, every row, {videos}")
    found = examine(folder, read_spec(reading[1]), lake=where.lake, source_format=reading[0], deep=deep)
    found["source"] = source
    if repaired is not None:
        found["repaired"] = repaired
    show_findings(found["findings"], screen.line)
    counts = found["episodes"]
    checked = f"in {counts['in']} = ok {counts['ok']} + quarantined {counts['quarantined']}"
    if found["version"] == "unknown" and not counts["in"]:
        screen.line(f"{found['format']} · nothing was checked: what is said above comes first")
    else:
        told = counted(len(found["findings"]), "finding")
        screen.line(f"{found['format']} {found['version']} · {checked} · {told}")
    for text, number in sorted(found["tasks"].items(), key=lambda item: -item[1])[:SHOWN_TASKS]:
        screen.line(f"  {number:>6} × {text or '(no instruction)'}")
    if fix := gravest_fix(found["findings"]):
        screen.line(f"  next: {fix}")
    if counts["ok"] and found["format"] != "lake":
        given = "".join(f" --set {shlex.quote(each)}" for each in reading[1])
        screen.line(f"  use:  ./vlaloop ingest {shlex.quote(source)} --dataset NAME --embodiment ROBOT{given}")
    screen.answer(found)
    return FAILED if any(finding["severity"] == "error" for finding in found["findings"]) else DONE


def _repair(source: Path, screen: Screen) -> list[dict[str, Any]]:
    from data_lake.repair import repair

    changes = repair(source)
    for change in changes:
        screen.line(f"  repaired {change}")
    screen.line(
        counted(len(changes), "repair") + (" · the metadata before lie beside, meta.before-repair-*" if changes else "")
    )
    return [asdict(change) for change in changes]


def ingest(
    where: Places,
    source: str,
    dataset: str,
    embodiment: str,
    reading: Reading,
    screen: Screen,
    *,
    strict: bool,
    verify: bool,
    copy: Literal["copy", "reference"] = "copy",
    why: str | None = None,
) -> int:
    """Take the episodes of a folder into a lake data set; what is there already is not taken twice.

    verify: a file whose size and mtime are as they were is hashed all the same. copy: as in IngestSpec. why: revoke the
    record of an ingest that is finished, and repeat it.
    """
    from data_lake.names import ensure_name
    from data_lake.specs import IngestSpec
    from flows.follow import Board, LiveView, PlainView
    from tasks.build import build
    from tasks.catalogue import ingest as stage
    from tasks.events import read_events
    from tasks.specs import IngestStage

    ensure_name(dataset)
    runtime = load_profile("laptop", where, run_id=f"ingest-{uuid.uuid4().hex[:12]}", label=dataset)
    asked = IngestSpec(dataset=dataset, copy=copy, embodiment=embodiment, format=reading[0], read=read_spec(reading[1]))
    spec = IngestStage(ingest=asked)
    board = Board()
    view = LiveView(screen, board) if screen.is_live else PlainView(screen)

    def told(_report: Any) -> None:
        event = read_events(where.home, runtime.run_id)[-1]
        if row := board.take(event):
            view.changed(row, event)
        view.tick("")

    try:
        look = look_at_files(source, where.home, screen.line, rehash=verify)
        if why is not None:
            _revoke(stage.slot(spec, look, lake=where.lake), why, screen)
        built = build(stage, spec, look, runtime=replace(runtime, sink=told))
    finally:
        view.close()
    return _say(built, screen, strict=strict)


def _say(built: "Built", screen: Screen, *, strict: bool) -> int:
    """What came in, and what is wrong with it."""
    ref = asdict(built.ref)
    show_findings(built.record["summary"]["table"], screen.line)
    ref |= {"num_new": 0} if built.is_cached else {}
    done_before = " (done before, nothing is new)" if built.is_cached else ""
    screen.line(f"{ref['dataset']}@{ref['version']}: {built.record['summary']['line']}{done_before}")
    failed = strict and ref["num_quarantined"] > 0
    result = {**ref, "cached": built.is_cached, "findings": built.record["summary"]["table"]}
    answer = {"command": "ingest", "ok": not failed, "result": result}
    if failed:
        return screen.failed(_too_strict(built), answer)
    screen.answer(answer)
    return DONE


def _too_strict(built: "Built") -> UserError:
    ref = asdict(built.ref)
    return UserError(
        "INGEST-001",
        f"failed because of --strict: {counted(ref['num_quarantined'], 'episode')} in quarantine",
        done=f"{counted(ref['num_episodes'], 'sound episode')} in the lake as {ref['dataset']}@{ref['version']}",
        next_step=f"./vlaloop show {short(built.record)} tells why; mend them and ingest again, or leave out --strict",
    )


def _revoke(slot: "Slot", why: str, screen: Screen) -> None:
    from data_lake.store import revoke

    if slot.record() is not None:
        revoke(slot, why=why, who=getpass.getuser())
        screen.line(f"revoked {slot.name}: {why}")


def report(order: Order, path: Path | None, screen: Screen) -> int:
    """Write the page about the newest state of a recipe's loop: one file, no server, no network."""
    from data_lake.refs import from_json
    from data_lake.vouched import require_files
    from tasks.lineage import lineage
    from tasks.report import build_report

    recipe = order.load()
    planned = make_plan(recipe, order.where.lake, *look_at_sources(recipe, order.where))
    built = [each.record for each in planned if each.record]
    command = f"./vlaloop run {order.recipe}" + "".join(f" --set {shlex.quote(change)}" for change in order.changes)
    if not built:
        raise UserError(
            "CLI-005", f"nothing of {recipe.name} is built in this lake", where=str(order.where.lake), next_step=command
        )
    chain = lineage(order.where.lake, [from_json(built[-1]["ref"])])
    require_files(order.where.lake, [from_json(record["ref"]) for record in chain.values()])
    page = build_report(order.where.lake, chain, command=command)
    changed = f"-{built[-1]['fingerprint'][:8]}" if order.changes else ""
    target = path or Path(f"report-{recipe.name}{changed}.html")
    target.write_text(page, encoding="utf-8")
    screen.line(f"{target.resolve()} · {len(page.encode()) / 1e6:.1f} MB")
    screen.answer({"command": "report", "ok": True, "result": {"path": str(target.resolve())}})
    return DONE


def show_findings(findings: list[dict[str, Any]], tell: Callable[[str], None]) -> None:
    """Two lines each: severity, code, place, message."""
    for finding in findings[:SHOWN_FINDINGS]:
        names = ("episode", "camera", "row", "file")
        place = " · ".join(f"{name} {finding[name]}" for name in names if finding.get(name) is not None)
        tell(f"  {finding['severity']:<8} {finding['code']} {place or 'source'}: {finding['message']}")
        tell(f"  {'':<8} {finding['fix']}")
    if len(findings) > SHOWN_FINDINGS:
        tell(f"  … and {len(findings) - SHOWN_FINDINGS} more (--json has all)")


def gravest_fix(findings: list[dict[str, Any]]) -> str:
    """What mends the first of the errors, which come as `fold` orders them, or of the warnings where there is none."""
    by_severity = {finding["severity"]: finding["fix"] for finding in reversed(findings) if finding["fix"]}
    return by_severity.get("error") or by_severity.get("warning") or ""
