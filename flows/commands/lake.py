"""`ls`, `show` and `gc`: what is in the lake, what made it, and what nothing needs any more."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from data_lake.files import LakePath, name_below
from data_lake.gc import Garbage, find_garbage, remove
from data_lake.mirror import mirror_of
from data_lake.refs import from_json
from data_lake.store import builders, damaged, records
from data_lake.words import counted
from errors import UserError
from flows.commands.quarantine import quarantined, sources_of, tell_ingested
from flows.places import Places
from flows.screen import DONE, FAILED, Screen, seconds, size
from tasks.catalogue import STAGES
from tasks.lineage import lineage, recipe_of
from tasks.promotion import alias_now, audit_log, replay

Json = dict[str, Any]
DATASETS = "datasets/"


def ls(where: Places, stage: str | None, screen: Screen) -> int:
    """All refs of the lake (or of one stage), oldest first."""
    if stage is not None and stage not in STAGES:
        raise UserError("CLI-003", f"no stage {stage!r}", next_step=f"known: {', '.join(STAGES)}")
    found = records(where.lake, stage)
    rows = []
    for record in found:
        what = f"revoked: {record['revoked']['why']}" if "revoked" in record else _what(where.lake, record)
        provenance = record["provenance"]
        built = provenance["finished"][:16].replace("T", " ")
        rows.append((short(record), record["label"], built, seconds(provenance["seconds"]), what))
    if found:
        titles = ("slot", "recipe", "built", "took", "what")
        screen.table(titles, rows, whole=titles[:-1])
    else:
        screen.line(f"nothing is built in {where.lake} yet; ./vlaloop run tiny")
    for slot, holder in builders(where.lake).items():
        screen.line(f"{slot[: slot.index('/') + 9]} is being built by run {holder.run_id} (process {holder.pid})")
    screen.answer([_ref(record) for record in found])
    return DONE


def show(where: Places, name: str, screen: Screen) -> int:
    """One ref: its record, whether its files are what the record vouches for, and everything it was made of."""
    record = _find(where, name)
    chain = lineage(where.lake, [from_json(record["ref"])])
    wrong = damaged(where.lake, record)
    screen.line(f"{short(record)} · {record['label']} · {record['summary']['line']}")
    provenance = record["provenance"]
    screen.line(
        f"  built {provenance['finished']} on {provenance['host']} in {seconds(provenance['seconds'])}"
        f" by run {provenance['run_id']}"
    )
    num_bytes = sum(file["size"] for file in record["files"].values())
    screen.line(f"  {counted(len(record['files']), 'file')} · {size(num_bytes)} · {where.lake / record['ref']['uri']}")
    for line in wrong:
        screen.line(f"  damaged: {line}")
    out = quarantined(where.lake, record)
    tell_ingested(out, record, screen)
    screen.line("made of")
    for path in sources_of(chain.values()):
        screen.line(f"  {'source':<12} {path}")
    for each in chain.values():
        if each["fingerprint"] != record["fingerprint"]:
            screen.line(f"  {each['stage']:<12} {short(each):<24} {each['summary']['line']}")
    screen.line("settings")
    for line in json.dumps(recipe_of(chain), indent=1).splitlines()[1:-1]:
        screen.line(f" {line}")
    screen.answer(
        {
            "ref": record["ref"],
            "record": record,
            "lineage": [_ref(each) for each in chain.values()],
            "damaged": wrong,
            "quarantine": out,
        }
    )
    return FAILED if wrong else DONE


def gc(where: Places, grace_s: float, dry_run: bool, screen: Screen) -> int:
    """Remove what no record, live lease or unfinished run reaches, once it is older than `grace_s`."""
    mirror = None if isinstance(where.lake, Path) else mirror_of(where.lake, where.home)
    garbage = find_garbage(where.lake, grace_s=grace_s, mirror=mirror)
    for line in _gathered(where.lake, garbage):
        screen.line(f"  {line}")
    freed = sum(each.num_bytes for each in garbage) if dry_run else remove(garbage)
    would = "would free" if dry_run else "freed"
    screen.line(
        f"{len(garbage)} to remove, {would} {size(freed)} (--json names each)" if garbage else "nothing to remove"
    )
    removed = [{"path": str(each.path), "why": each.why, "bytes": each.num_bytes} for each in garbage]
    screen.answer({"command": "gc", "ok": True, "result": {"removed": removed, "bytes": freed, "dry_run": dry_run}})
    return DONE


def _gathered(lake: LakePath, garbage: Sequence[Garbage]) -> Iterator[str]:
    """A line each, of files of tables one for all of a data set that have the same reason."""
    together: dict[tuple[str, str], list[Garbage]] = {}
    for each in garbage:
        name = name_below(lake, each.path)
        inside = "/".join(name.split("/")[:2]) if name.startswith(DATASETS) else name
        together.setdefault((inside, each.why), []).append(each)
    for (name, why), found in together.items():
        files = f" · {counted(len(found), 'file')}" if name.startswith(DATASETS) else ""
        yield f"{name}{files} · {size(sum(each.num_bytes for each in found))} · {why}"


def find_refs(lake: LakePath, name: str) -> list[Json]:
    """Records by `stage/fingerprint` or a beginning of either's fingerprint, or `model@alias`, `model@version`."""
    found = records(lake)
    model, at, wanted = name.partition("@")
    fingerprint = _registered(lake, model, wanted) if at else name.rpartition("/")[2].rstrip("…")
    stage = "register" if at else name.rpartition("/")[0]
    return [
        each
        for each in found
        if fingerprint and each["fingerprint"].startswith(fingerprint) and stage in ("", each["stage"])
    ]


def _find(where: Places, name: str) -> Json:
    hits = find_refs(where.lake, name)
    if len(hits) == 1:
        return hits[0]
    if not hits:
        raise UserError("CLI-004", f"no ref {name!r} in this lake", where=str(where.lake), next_step="./vlaloop ls")
    raise UserError("CLI-004", f"{name!r} may be any of {', '.join(short(each) for each in hits)}")


def _registered(lake: LakePath, model: str, wanted: str) -> str:
    """Fingerprint of the slot that registered a version; empty when there is no such one."""
    number = int(wanted) if wanted.isdecimal() else _by_alias(lake, model, wanted)
    for record in records(lake, "register"):
        if (record["ref"]["name"], record["ref"]["version"]) == (model, number):
            return record["fingerprint"]
    return ""


def _by_alias(lake: LakePath, model: str, alias: str) -> int | None:
    return replay(audit_log(lake, model).read()).aliases.get(alias)


def _what(lake: LakePath, record: Mapping[str, Any]) -> str:
    """The line of a record; for a registered version with the alias that it has now, which may be another."""
    line = record["summary"]["line"]
    if record["stage"] != "register":
        return line
    return f"{line} · now {alias_now(lake, record['ref']['name'], record['ref']['version']) or 'without an alias'}"


def short(record: Mapping[str, Any]) -> str:
    """`train/77c1f00d`."""
    return f"{record['stage']}/{record['fingerprint'][:8]}"


def _ref(record: Mapping[str, Any]) -> Json:
    """The ref with where it stands."""
    return {"stage": record["stage"], "slot": f"{record['stage']}/{record['fingerprint']}", **record["ref"]}
