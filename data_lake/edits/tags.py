"""Tags: names for versions of a data set. Moving one is a further file, so who moved it when stays readable."""

from dataclasses import asdict, dataclass

from data_lake.files import LakePath, put_if_absent
from data_lake.names import NAME
from data_lake.sealed import numbered, of_kind, sealed, unsealed
from data_lake.store import now
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class Tag:
    """number: how often it was put. who, at: for people."""

    name: str
    number: int
    version: int
    who: str
    at: str


def put_tag(root: LakePath, name: str, version: int, *, who: str, move: bool = False) -> Tag:
    """`name` means `version` from now on; as it is when it did already.

    Raises UserError LAKE-183 when it means another version and `move` is not said, LAKE-185 for what is no tag.
    """
    while True:
        known = history(root, name)
        if known and known[-1].version == version:
            return known[-1]
        if known and not move:
            raise UserError(
                "LAKE-183",
                f"the tag {name!r} means version {known[-1].version}",
                where=f"{root.name} · put by {known[-1].who} at {known[-1].at}",
                done="nothing was changed",
                next_step="--move lets it mean another version",
            )
        tag = Tag(name=name, number=len(known) + 1, version=version, who=who, at=now())
        path = root / "tags" / name / f"{tag.number:06d}.json"
        if put_if_absent(path, sealed(asdict(tag))):
            return tag


def history(root: LakePath, name: str) -> list[Tag]:
    """Every time the tag was put, oldest first. Raises UserError LAKE-185 for what is no name of a tag, and as
    `unsealed` for a file that does not hold."""
    if not NAME.fullmatch(name) or name.isdecimal():
        raise UserError(
            "LAKE-185",
            f"not a name for a tag: {name!r}",
            next_step="use letters, digits, `.`, `-` and `_`, and not digits alone",
        )
    paths = numbered(root / "tags" / name).values()
    return [
        unsealed(path, lambda said: of_kind(Tag, said), remedy="remove the file, and put the tag again")
        for path in paths
    ]


def tags(root: LakePath) -> list[Tag]:
    """What every tag of the data set at `root` means now, by name."""
    return [known[-1] for known in (history(root, name) for name in tag_names(root)) if known]


def tag_names(root: LakePath) -> list[str]:
    return sorted(path.name for path in (root / "tags").glob("*") if NAME.fullmatch(path.name))


def tagged(root: LakePath, name: str) -> int:
    """The version that the tag means. Raises UserError LAKE-184 when there is none, LAKE-185 for what is no tag."""
    known = history(root, name)
    if not known:
        others = ", ".join(tag_names(root)) or "none"
        raise UserError(
            "LAKE-184",
            f"data set {root.name!r} has no tag {name!r}",
            where=str(root / "tags"),
            next_step=f"tags: {others}; ./vlaloop tag {root.name}@1 {name}",
        )
    return known[-1].version
