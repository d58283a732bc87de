"""Slots: build-once addresses in the lake. A slot is finished when, and only when, its record exists.

In {lake}/{stage}/{fingerprint}/: leases/0001.json says who builds, attempts/1/ is what that attempt wrote, record.json
is written last, put-if-absent, and names its attempt; revoked.json says why a record turned out bad.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from upath import UPath

from data_lake import identity, objects
from data_lake.files import LakePath, name_below, put_if_absent, sha256, tree
from data_lake.lease import Holder, Lease, acquire, newest
from data_lake.refs import Ref, from_json, to_json
from data_lake.sealed import sealed, unsealed

RECORD = "record.json"
REVOKED = "revoked.json"
WRITTEN = {"stage", "fingerprint", "identity", "attempt", "ref", "files"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """An address that follows from what is to be built: stage, semantic version, spec, input fingerprints."""

    lake: LakePath
    stage: str
    fingerprint: str
    identity: dict[str, Any]

    @property
    def path(self) -> LakePath:
        return self.lake / self.stage / self.fingerprint

    @property
    def name(self) -> str:
        """Short name for people: `train/77c1…`."""
        return f"{self.stage}/{self.fingerprint[:4]}…"

    def record(self) -> dict[str, Any] | None:
        """What was built here, or None while nothing is finished."""
        path = self.path / RECORD
        return read_record(path) if path.exists() else None

    def ref(self) -> Ref | None:
        record = self.record()
        return from_json(record["ref"]) if record else None

    def holder(self) -> Holder | None:
        """Who builds here now, or did last."""
        return newest(self.path / "leases")


def slot_of(lake: LakePath, stage: str, version: int, spec: Any, refs: Sequence[Ref]) -> Slot:
    """The slot of this spec and these inputs.

    A revoked record moves the identity on: the revocation becomes part of it, so that the stage and all
    that depends on it are built anew at other addresses, and nothing is overwritten.
    """
    found = {
        "stage": stage,
        "version": version,
        "spec": identity.canonical(spec),
        "inputs": [ref.fingerprint for ref in refs],
    }
    while True:
        slot = Slot(lake=lake, stage=stage, fingerprint=identity.fingerprint(found), identity=found)
        revoked = slot.path / REVOKED
        if not revoked.exists():
            return slot
        found = {**found, "revoked": [*found.get("revoked", []), sha256(revoked)[:16]]}


def revoke(slot: Slot, *, why: str, who: str) -> bool:
    """Declare the record of `slot` bad. False if it had been revoked before; KeyError if there is no record."""
    if slot.record() is None:
        raise KeyError(f"{slot.name} has no record to revoke")
    audit = {"why": why, "who": who, "at": now(), "record_sha256": sha256(slot.path / RECORD)}
    return put_if_absent(slot.path / REVOKED, sealed(audit))


def now() -> str:
    """UTC, ISO 8601; for people and provenance only, nothing is ever decided by it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Attempt:
    """One builder's turn at a slot: what a stage function gets as `out`. It writes files of this machine, in the
    lake's mirror, which is the lake itself where that is a folder."""

    def __init__(self, slot: Slot, lease: Lease, mirror: Path) -> None:
        self._slot = slot
        self._lease = lease
        self._mirror = mirror
        self._known: dict[LakePath, str] = {}
        self._copied: dict[Path, dict[str, Any]] = {}
        self.number = lease.attempt
        if not isinstance(
            slot.lake, Path
        ):  # the number is new to the store: what is here was of a slot that gc removed
            shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True, exist_ok=True)

    @property
    def fingerprint(self) -> str:
        return self._slot.fingerprint

    @property
    def slot(self) -> Path:
        return self._mirror / self._slot.stage / self._slot.fingerprint

    @property
    def path(self) -> Path:
        """The directory that only this attempt writes."""
        return self.slot / "attempts" / str(self.number)

    @property
    def uri(self) -> str:
        return name_below(self._mirror, self.path)

    @property
    def earlier(self) -> list[Path]:
        """Directories of earlier attempts on this machine, newest first; what is complete in them may be read."""
        numbered = [path for path in (self.slot / "attempts").iterdir() if int(path.name) < self.number]
        return sorted(numbered, key=lambda path: -int(path.name))

    @property
    def siblings(self) -> list[dict[str, Any]]:
        """Records of the stage at the same semantic version, newest first, whose files may be taken as they are.

        None when this slot replaces a revoked one: it is built from nothing.
        """
        identity = self._slot.identity
        if "revoked" in identity:
            return []
        found = [record for record in records(self._slot.lake, self._slot.stage) if "revoked" not in record]
        return [record for record in reversed(found) if record["identity"]["version"] == identity["version"]]

    def vouch(self, path: Path, digest: str) -> None:
        """`path` is a link to a file that was read and has this SHA-256: it need not be read again."""
        self._known[path] = digest

    def copy(self, path: Path, source: UPath, size: int, digest: str) -> None:
        """`source`, which a record vouches for, to where `path` will be in the store: no byte of it passes this
        machine, and it need not be at `path`."""
        lake = self._slot.lake
        assert not isinstance(lake, Path), "a lake in a folder links"
        objects.copy(source, lake / name_below(self._mirror, path))
        self._copied[path] = {"size": size, "sha256": digest}

    def check(self) -> None:
        """Raise TakenOver when another builder has the slot now. Call it between units of work."""
        self._lease.check()

    def commit(self, ref: Ref, details: dict[str, Any]) -> dict[str, Any]:
        """Write the record, last. Returns it, or the one that another attempt had written by then."""
        self.check()
        record = {
            "stage": self._slot.stage,
            "fingerprint": self._slot.fingerprint,
            "identity": self._slot.identity,
            "attempt": self.number,
            "ref": to_json(ref),
            **details,
            "files": self._vouched(ref),
        }
        if not isinstance(self._slot.lake, Path):
            self._upload(self._slot.lake, record["files"])
        put_if_absent(self._slot.path / RECORD, sealed(record))
        self._lease.release()
        return self._slot.record() or record

    def release(self) -> None:
        """Let go without a record; a later attempt may read what is complete."""
        self._lease.release()

    def _vouched(self, ref: Ref) -> dict[str, dict[str, Any]]:
        """Size and SHA-256 of every file of the result: below the ref where that lies in this slot."""
        root = self._mirror / ref.uri
        inside = root.is_relative_to(self.slot)
        found = {*tree(root if inside else self.path), *self._copied}
        return {
            name_below(self.slot, path): self._copied.get(path)
            or {"size": path.stat().st_size, "sha256": self._known.get(path) or sha256(path, durable=True)}
            for path in sorted(found)
        }

    def _upload(self, lake: UPath, vouched: Iterable[str]) -> None:
        """The attempts that hold files of the result, whole, into the store: before the record, under the lease."""
        for number in sorted({name.split("/")[1] for name in vouched} | {str(self.number)}):
            name = f"{self._slot.stage}/{self._slot.fingerprint}/attempts/{number}"
            objects.upload(self._mirror / name, lake / name, self.check, there=self._copied)
        self.check()


def begin(
    slot: Slot,
    *,
    run_id: str,
    lease_s: float,
    on_wait: Callable[[Holder], None],
    mirror: Path | None = None,
    again: bool = False,
) -> Attempt | None:
    """Take the slot, waiting while another builder lives; None when the record exists by then.

    mirror: where attempts on an object store are written before they are put there (see `data_lake.mirror`). again:
    whatever is recorded, to see whether the same comes out.
    """
    here = slot.lake if isinstance(slot.lake, Path) else mirror
    if here is None:
        raise ValueError(f"{slot.name}: an attempt at a slot of {slot.lake} needs a mirror")
    lease = acquire(
        slot.path / "leases",
        run_id=run_id,
        lease_s=lease_s,
        is_finished=(lambda: False) if again else (slot.path / RECORD).exists,
        on_wait=on_wait,
    )
    return Attempt(slot, lease, here) if lease else None


def records(lake: LakePath, stage: str | None = None) -> list[dict[str, Any]]:
    """All records of the lake (or of one stage), oldest first. Revoked ones carry `revoked`."""
    found = []
    for path in lake.glob(f"{stage or '*'}/*/{RECORD}"):
        record, revoked = read_record(path), path.parent / REVOKED
        why = {"revoked": unsealed(revoked, _why, remedy='write {"why": "…"} into it')} if revoked.exists() else {}
        found.append({**record, **why})
    return sorted(found, key=lambda record: record["provenance"]["finished"])


def read_record(path: LakePath) -> dict[str, Any]:
    """A record. Raises `UserError` LAKE-080 for one that is torn, LAKE-242 for one that is not what was written: what
    it vouched for is not known any more."""
    return unsealed(path, _whole, remedy="restore the file, or delete it: the stage is then built again")


def _whole(record: dict[str, Any]) -> dict[str, Any]:
    if lacking := WRITTEN - record.keys():
        raise KeyError(min(lacking))
    return record


def _why(audit: dict[str, Any]) -> dict[str, Any]:
    return {**audit, "why": str(audit["why"])}


def builders(lake: LakePath) -> dict[str, Holder]:
    """Who builds at this moment, by unfinished slot (`stage/fingerprint`), without those surely gone."""
    found = {}
    for leases in sorted(lake.glob("*/*/leases")):
        holder = None if (leases.parent / RECORD).exists() else newest(leases)
        if holder is not None and not holder.is_gone():
            found[name_below(lake, leases.parent)] = holder
    return found


def damaged(lake: LakePath, record: dict[str, Any]) -> list[str]:
    """Files that the record vouches for and that are missing or changed, as lines that name them."""
    root = lake / record["stage"] / record["fingerprint"]
    found = []
    for name, expected in record["files"].items():
        path = root / name
        if not path.exists():
            found.append(f"{name}: missing")
        elif path.stat().st_size != expected["size"] or sha256(path) != expected["sha256"]:
            found.append(f"{name}: content differs from what its record vouches for")
    return found
