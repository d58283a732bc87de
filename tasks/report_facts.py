"""Reads what a report shows out of the records of a run and the files that they vouch for."""

import base64
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data_lake.files import LakePath
from tasks.lineage import Record

MAX_VIDEO_BYTES = 24 << 20  # inlined in all; what is more is named, not shown


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """A rollout's video, as a data URI; empty where the page would grow too large."""

    title: str
    note: str
    is_success: bool
    uri: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """All findings of one code. `where` names the first of them."""

    code: str
    severity: str
    count: int
    message: str
    where: str
    fix: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """A run's lines by step: loss and rate as (step, value), the median rate and the mean share of waiting."""

    loss: tuple[tuple[float, float], ...]
    rate: tuple[tuple[float, float], ...]
    median_rate: float
    input_wait: float


def folder_of(lake: LakePath, record: Record) -> LakePath:
    """The directory that the record's ref names."""
    return lake / record["ref"]["uri"]


def training(lake: LakePath, record: Record) -> Training | None:
    """The curves of a train slot, over all its attempts: a resumed run goes on in another file."""
    slot = lake / record["stage"] / record["fingerprint"] / "attempts"
    by_step: dict[int, Mapping[str, Any]] = {}
    for path in sorted(slot.glob("*/metrics.jsonl"), key=lambda path: int(path.parent.name)):
        for text in path.read_text().splitlines():
            if text.endswith("}"):
                line = json.loads(text)
                by_step[line["step"]] = line
    lines = [by_step[step] for step in sorted(by_step)]
    loss = tuple((line["step"] + 1, line["loss"]) for line in lines if line["loss"] is not None)
    rate = tuple((line["step"] + 1, line["samples_per_s"]) for line in lines if line["samples_per_s"] is not None)
    waits = [line["input_wait"] for line in lines if line["input_wait"] is not None]
    if not loss:
        return None
    median = statistics.median(value for _, value in rate) if rate else 0.0
    return Training(loss=loss, rate=rate, median_rate=median, input_wait=statistics.fmean(waits) if waits else 0.0)


def fills(lake: LakePath, record: Record, num_bins: int = 20) -> tuple[list[float], float]:
    """Rows per bin of fill, and where the first bin begins; the last ends at 1."""
    found = _read(folder_of(lake, record) / "packed.json")["fill_by_row"]
    lowest = min((fill for fill, _ in found), default=0.0)
    first = max(0.0, min(int(lowest * 20) / 20, 0.8))
    counts = [0.0] * num_bins
    for fill, count in found:
        counts[min(int((fill - first) / (1 - first) * num_bins), num_bins - 1)] += count
    return counts, first


def layer_errors(lake: LakePath, record: Record) -> list[tuple[str, float]]:
    """(layer, relative error) of an export, largest first; empty where nothing was quantised."""
    path = folder_of(lake, record) / "error.json"
    layers = _read(path)["layers"] if path.exists() else []
    return sorted(((layer["name"], layer["relative"]) for layer in layers), key=lambda pair: -pair[1])


def findings(lake: LakePath, record: Record) -> list[Finding]:
    """What ingest found, one line per code, the severest first."""
    by_code: dict[str, list[Mapping[str, Any]]] = {}
    for found in _read(folder_of(lake, record) / "findings.json"):
        by_code.setdefault(found["code"], []).append(found)
    order = {"error": 0, "warning": 1}
    grouped = [_grouped(code, found) for code, found in by_code.items()]
    return sorted(grouped, key=lambda each: (order.get(each.severity, 2), each.code))


def _grouped(code: str, found: list[Mapping[str, Any]]) -> Finding:
    first = found[0]
    episode = [] if first["episode"] is None else [f"episode {first['episode']}"]
    where = " · ".join([*([first["file"]] if first["file"] else []), *episode])
    return Finding(
        code=code,
        severity=first["severity"],
        count=len(found),
        message=first["message"],
        where=where,
        fix=first["fix"],
    )


def clips(lake: LakePath, record: Record, *, max_bytes: int = MAX_VIDEO_BYTES) -> list[Clip]:
    """Videos of an evaluation, failures first; shown up to `max_bytes` in all."""
    folder = folder_of(lake, record)
    filmed = [episode for episode in evaluation(lake, record)["episodes"] if episode.get("video")]
    shown, left = [], max_bytes
    for episode in sorted(filmed, key=lambda episode: episode["success"]):
        content = (folder / episode["video"]).read_bytes()
        left -= len(content)
        shown.append(
            Clip(
                title=episode["instruction"],
                note=f"{episode['task']} · seed\u00a0{episode['seed']} · {episode['seconds']:.1f}\u00a0s",
                is_success=episode["success"],
                uri=f"data:video/mp4;base64,{base64.b64encode(content).decode()}" if left >= 0 else "",
            )
        )
    return shown


def evaluation(lake: LakePath, record: Record) -> Mapping[str, Any]:
    """What evaluate wrote beside its ref."""
    return _read(folder_of(lake, record) / "report.json")


def _read(path: LakePath) -> Any:
    return json.loads(path.read_text())
