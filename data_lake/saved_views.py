"""Saved views: named choices of a data set's episodes, as small files beside its tables.

{dataset}/views/{name}/000001.json is the first revision. A changed choice is a new revision, put if absent; nothing is
ever overwritten, so that what a run pinned stays what it was.
"""

from dataclasses import asdict, dataclass
from typing import Any

from data_lake.curation import Choice
from data_lake.files import LakePath, put_if_absent
from data_lake.names import NAME
from data_lake.sealed import numbered, of_kind, sealed, unsealed
from data_lake.store import now
from errors import UserError

FOLDER = "views"


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedView:
    """who, at: for people. num_episodes: how many it kept of data set version `version` when it was saved."""

    name: str
    revision: int
    choice: Choice
    who: str
    at: str
    version: int
    num_episodes: int

    @property
    def title(self) -> str:
        return f"{self.name}@{self.revision}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def save(root: LakePath, name: str, choice: Choice, *, who: str, version: int, num_episodes: int) -> SavedView:
    """The newest revision of the view `name` of the data set at `root`, which is a new one if `choice` changed.

    Raises UserError LAKE-212 for a name that could lead anywhere else.
    """
    while True:
        known = revisions(root, name)
        newest = open_saved(root, name) if known else None
        if newest is not None and newest.choice == choice:
            return newest
        view = SavedView(
            name=name,
            revision=known[-1] + 1 if known else 1,
            choice=choice,
            who=who,
            at=now(),
            version=version,
            num_episodes=num_episodes,
        )
        if put_if_absent(_path(root, name, view.revision), sealed(view.as_json())):
            return view


def open_saved(root: LakePath, name: str, revision: int | None = None) -> SavedView:
    """That revision of a view, or the newest. Raises UserError LAKE-205 when there is none, naming those there are,
    and as `unsealed` for a file that does not hold."""
    known = revisions(root, name)
    wanted = revision if revision is not None or not known else known[-1]
    if wanted not in known:
        others = ", ".join(f"{each}@{revisions(root, each)[-1]}" for each in view_names(root)) or "none"
        what = f"{name!r}" if revision is None else f"{name}@{revision}"
        raise UserError(
            "LAKE-205",
            f"data set {root.name} has no saved view {what}",
            where=str(root / FOLDER),
            next_step=f"./vlaloop view {root.name} {name} --where …; saved: {others}",
        )
    path = _path(root, name, wanted)
    return unsealed(path, _view, remedy=f"remove it and save the view again: ./vlaloop view {root.name} {name} …")


def _view(said: dict[str, Any]) -> SavedView:
    return of_kind(SavedView, said | {"choice": of_kind(Choice, said["choice"])})


def saved_views(root: LakePath) -> tuple[list[SavedView], list[UserError]]:
    """The newest revision of every view of a data set, by name; and what is wrong with those that do not hold."""
    found: list[SavedView] = []
    wrong: list[UserError] = []
    for name in view_names(root):
        try:
            found.append(open_saved(root, name))
        except UserError as error:
            wrong.append(error)
    return found, wrong


def view_names(root: LakePath) -> list[str]:
    names = (path.name for path in (root / FOLDER).glob("*") if NAME.fullmatch(path.name))
    return sorted(name for name in names if revisions(root, name))


def revisions(root: LakePath, name: str) -> list[int]:
    """Revisions of a view, oldest first."""
    if not NAME.fullmatch(name):
        raise UserError("LAKE-212", f"not a name for a view: {name!r}", next_step="use letters, digits, `.`, `-`, `_`")
    return list(numbered(root / FOLDER / name))


def _path(root: LakePath, name: str, revision: int) -> LakePath:
    return root / FOLDER / name / f"{revision:06d}.json"
