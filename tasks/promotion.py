"""Which version is champion: an append-only audit log, and the pure replay that gives today's aliases.

The log decides: move n is a file that only one writer can create. The registry's aliases are set to what
the log says, so a kill between the two is mended by whoever looks next.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from data_lake.files import LakePath, name_below, put_if_absent, sha256, tree
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """A registered version, complete. artifact: digest over its files. tags: ours, without their prefix."""

    name: str
    number: int
    location: str
    artifact: str
    fingerprint: str
    tags: Mapping[str, str]


def checked_name(name: str) -> str:
    """`name` when it is fit for a path and a query. Raises UserError REG-001 otherwise."""
    if not name or not name[0].isalnum() or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise UserError(
            "REG-001", f"{name!r} is no name for a registered model", next_step="use letters, digits, `.`, `_` and `-`"
        )
    return name


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder` by relative name."""
    return {name_below(folder, path): sha256(path) for path in tree(folder)}


def digest_of(files: Mapping[str, str]) -> str:
    """One digest over names and contents."""
    return hashlib.sha256("".join(f"{name} {files[name]}\n" for name in sorted(files)).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One change of an alias. action: `champion` or `challenger` (that alias goes to `version`), or `rollback`
    (champion goes back to `version`). fingerprint: of the version, so that a number reused by another
    registry is not mistaken for it. checks: the gate's, as (name, value, comparison, limit, passed)."""

    action: str
    version: int
    fingerprint: str
    before: int | None
    who: str
    why: str
    at: str
    evaluation: str = ""
    checks: tuple[tuple[str, float, str, float, bool], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """champions: the present one last, before it those that a rollback would bring back."""

    champions: tuple[int, ...] = ()
    challenger: int | None = None

    @property
    def aliases(self) -> dict[str, int]:
        """What each alias must point to; an alias that is not named must not exist."""
        found = {"champion": self.champions[-1:], "previous": self.champions[-2:-1]}
        named = {alias: versions[0] for alias, versions in found.items() if versions}
        return named | ({"challenger": self.challenger} if self.challenger is not None else {})


def replay(moves: Sequence[Move]) -> Standing:
    """Where all moves together leave the aliases."""
    standing = Standing()
    for move in moves:
        standing = _after(standing, move)
    return standing


def _after(standing: Standing, move: Move) -> Standing:
    champions, challenger = standing.champions, standing.challenger
    if move.action == "challenger":
        return Standing(champions=champions, challenger=move.version)
    if move.action == "rollback":
        kept = champions[: champions.index(move.version) + 1] if move.version in champions else (move.version,)
        return Standing(champions=kept, challenger=challenger)
    earlier = tuple(version for version in champions if version != move.version)
    return Standing(champions=(*earlier, move.version), challenger=None if challenger == move.version else challenger)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditLog:
    """Moves of one registered model: {lake}/registry/{name}/audit/000001.json and on."""

    folder: LakePath

    def read(self) -> list[Move]:
        """All moves, oldest first."""
        return [_parsed(json.loads(path.read_text())) for path in sorted(self.folder.glob("[0-9]*.json"))]

    def append(self, number: int, move: Move) -> bool:
        """Write `move` as the number-th (from 1). False when somebody else's move has that number."""
        return put_if_absent(self.folder / f"{number:06d}.json", json.dumps(asdict(move), indent=1).encode())


def audit_log(lake: LakePath, name: str) -> AuditLog:
    """The moves of registered model `name`. Raises UserError REG-001 when that is no name."""
    return AuditLog(folder=lake / "registry" / checked_name(name) / "audit")


def alias_now(lake: LakePath, name: str, number: int) -> str | None:
    """The alias that version `number` has at present, from the log alone: champion before challenger and previous."""
    aliases = replay(audit_log(lake, name).read()).aliases
    return next((alias for alias in ("champion", "challenger", "previous") if aliases.get(alias) == number), None)


def _parsed(fields: dict[str, Any]) -> Move:
    checks: Any = tuple(tuple(check) for check in fields.pop("checks"))
    return Move(**fields, checks=checks)


class Shelf(Protocol):
    """What promotion needs of a registry."""

    def versions(self, name: str) -> list[Version]:
        """Complete versions, oldest first."""
        ...

    def audit(self, name: str) -> AuditLog: ...

    def set_aliases(self, name: str, wanted: Mapping[str, int]) -> None: ...

    def verify(self, location: str, digest: str) -> None:
        """Raise Transient unless the files at `location` are those that `digest` stands for."""
        ...


def standing(shelf: Shelf, name: str, moves: Sequence[Move]) -> Standing:
    """Where `moves` leave the versions that exist on this shelf."""
    known = {(version.number, version.fingerprint) for version in shelf.versions(name)}
    return replay([move for move in moves if (move.version, move.fingerprint) in known])


def settle(shelf: Shelf, name: str) -> Standing:
    """Make the aliases say what the log says, however many others are at it."""
    log = shelf.audit(name)
    while True:
        moves = log.read()
        found = standing(shelf, name, moves)
        if moves:
            shelf.set_aliases(name, found.aliases)
        if len(log.read()) == len(moves):
            return found


def move(shelf: Shelf, name: str, choose: Callable[[Standing], Move]) -> Move:
    """Append what `choose` makes of the present standing and settle; asked again when another move came first."""
    log = shelf.audit(name)
    while True:
        moves = log.read()
        chosen = choose(standing(shelf, name, moves))
        if log.append(len(moves) + 1, chosen):
            settle(shelf, name)
            return chosen


def champion(shelf: Shelf, name: str) -> Version | None:
    """The champion, after mending aliases that a kill left behind the log."""
    found = settle(shelf, name)
    return _numbered(shelf, name, found.champions[-1]) if found.champions else None


def rollback(shelf: Shelf, name: str, *, who: str, why: str, at: str) -> Move:
    """Make the champion before this one champion again, after reading its files back.

    Raises UserError REG-002 when there is none, Transient when its files are not what was registered.
    """

    def choose(found: Standing) -> Move:
        if len(found.champions) < 2:
            raise UserError("REG-002", f"{name} has no earlier champion to go back to", where=f"model {name}")
        present, target = found.champions[-1], _numbered(shelf, name, found.champions[-2])
        shelf.verify(target.location, target.artifact)
        return Move(
            action="rollback",
            version=target.number,
            fingerprint=target.fingerprint,
            before=present,
            who=who,
            why=why,
            at=at,
            evaluation=target.tags.get("evaluation", ""),
        )

    return move(shelf, name, choose)


def _numbered(shelf: Shelf, name: str, number: int) -> Version:
    return next(version for version in shelf.versions(name) if version.number == number)
