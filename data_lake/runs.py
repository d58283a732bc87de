"""Flow runs: the snapshot of the world that a run works on, and the slots that it reached.

In {lake}/runs/{run_id}/: snapshot.json says what "latest" meant when the run began (put-if-absent), slots/ names
what it touched, so that gc spares what a Retry continues, and finished.json ends it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from data_lake.files import LakePath, put_if_absent, read_bytes
from data_lake.refs import SourceRef, from_json, to_json
from data_lake.store import Slot, now


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One flow run as the lake knows it; a Retry has the same id."""

    lake: LakePath
    run_id: str

    @property
    def path(self) -> LakePath:
        return self.lake / "runs" / self.run_id

    def source(self, resolve: Callable[[], SourceRef], part: str = "") -> SourceRef:
        """The source as this run first saw it; `resolve` looks at the world and is called once per run. part: of a
        mixture, which component reads it."""
        path = self.path / (f"snapshot-{part}.json" if part else "snapshot.json")
        if not path.exists():
            snapshot = {"source": to_json(resolve()), "at": now()}
            put_if_absent(path, json.dumps(snapshot, indent=1).encode())
        return from_json(json.loads(read_bytes(path))["source"])

    def source_seen(self) -> SourceRef | None:
        """The same, of a run that has looked already."""
        path = self.path / "snapshot.json"
        return from_json(json.loads(path.read_text())["source"]) if path.exists() else None

    def touch(self, slot: Slot) -> None:
        """Note that this run needs `slot`."""
        mark = self.path / "slots" / f"{slot.stage}-{slot.fingerprint}"
        put_if_absent(mark, b"")

    def slots(self) -> list[tuple[str, str]]:
        """(stage, fingerprint) of every slot that this run touched."""
        marks = (self.path / "slots").iterdir() if (self.path / "slots").exists() else ()
        return sorted(tuple(mark.name.split("-", 1)) for mark in marks)  # type: ignore[misc]

    def finish(self, label: str) -> None:
        put_if_absent(self.path / "finished.json", json.dumps({"label": label, "at": now()}).encode())

    def is_finished(self) -> bool:
        return (self.path / "finished.json").exists()


def runs(lake: LakePath) -> list[Run]:
    """Every run that the lake has heard of."""
    folder = lake / "runs"
    return [Run(lake=lake, run_id=path.name) for path in sorted(folder.iterdir())] if folder.exists() else []
