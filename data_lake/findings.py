"""Findings: what was found wrong with episodes, in the words of `data_lake/codes.py`, with where it is."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from data_lake.codes import CODES, Severity
from data_lake.words import counted


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
    """One finding per kind: the first episode is named, how many more there are is said."""
    kinds: dict[tuple[str, str | None, str | None], list[Finding]] = {}
    for item in findings:
        about = None if item.episode is not None else item.message
        kinds.setdefault((item.code, item.camera, about), []).append(item)
    folded = []
    for items in kinds.values():
        episodes = tuple(sorted({item.episode for item in items if item.episode is not None}))
        if len(episodes) < 2:
            folded.append(items[0])
        else:
            tail = f" (and in {counted(len(episodes) - 1, 'more episode')})"
            folded.append(replace(items[0], message=items[0].message + tail, episodes=episodes))
    return sorted(folded, key=lambda item: (item.severity != "error", item.code))
