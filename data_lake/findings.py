"""Findings: what was found wrong with episodes, in the words of `data_lake/codes.py`, with where it is."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from data_lake.codes import FINDINGS, Code, Severity
from data_lake.refusals import REFUSALS
from data_lake.words import counted

CODES: dict[str, Code] = FINDINGS | REFUSALS


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing found, with where it is as far as that is known. `row` counts from 0 inside the episode.

    episodes: of one that stands for many, all of theirs, in order."""

    code: str
    severity: Severity
    message: str
    done: str
    fix: str
    episode: int | None = None
    camera: str | None = None
    row: int | None = None
    file: str | None = None
    episodes: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        told = {
            "code": self.code,
            "severity": self.severity,
            "episode": self.episode,
            "camera": self.camera,
            "row": self.row,
            "file": self.file,
            "message": self.message,
            "fix": self.fix,
        }
        return told | ({"episodes": list(self.episodes)} if self.episodes else {})


def finding(
    code: str,
    detail: str = "",
    *,
    episode: int | None = None,
    camera: str | None = None,
    row: int | None = None,
    file: str | None = None,
) -> Finding:
    """A finding with the table's words for `code`, and `detail` (figures, names) behind them."""
    known = CODES[code]
    message = f"{known.what}: {detail}" if detail else known.what
    return Finding(
        code=code,
        severity=known.severity,
        message=message,
        done=known.done,
        fix=known.fix,
        episode=episode,
        camera=camera,
        row=row,
        file=file,
    )


def fold(findings: Iterable[Finding]) -> list[Finding]:
    """One finding per kind: the first episode is named, how many more there are is said. Errors first: those of the
    whole source, then those of most episodes."""
    kinds: dict[tuple[str, str | None, str | None], list[Finding]] = {}
    for item in findings:
        about = None if item.episode is not None else item.message
        kinds.setdefault((item.code, item.camera, about), []).append(item)
    folded: list[tuple[float, Finding]] = []
    for items in kinds.values():
        episodes = tuple(sorted({item.episode for item in items if item.episode is not None}))
        found, more = items[0], len(episodes) - 1
        if more > 0:
            tail = f" (and in {counted(more, 'more episode')})"
            found = replace(found, message=found.message + tail, episodes=episodes)
        weight = 0 if found.severity != "error" else math.inf if found.episode is None else len(episodes)
        folded.append((weight, found))
    return [found for _, found in sorted(folded, key=lambda each: (-each[0], each[1].code))]
