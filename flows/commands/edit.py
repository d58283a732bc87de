"""`relabel`, `merge`, `compact` and `tag`: changes of a data set, each a new version that says who made it."""

import getpass
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data_lake.words import counted
from errors import UserError
from flows.places import Places
from flows.screen import DONE, Screen

if TYPE_CHECKING:
    from data_lake.edits.edit import Edited


SHOWN = 12


def relabel(
    where: Places, dataset: str, episodes: Sequence[str], instruction: str, labels: Path | None, screen: Screen
) -> int:
    """Another instruction for the named episodes, or for those that a file names."""
    from data_lake.edits.labels import read_labels
    from data_lake.edits.relabel import relabel as edit

    if bool(episodes and instruction) == bool(labels) or bool(episodes) != bool(instruction):
        raise UserError(
            "CLI-001", "say which episodes do what", next_step="--episode 3 --instruction TEXT, or --from FILE"
        )
    wanted = read_labels(labels) if labels else [(episode, instruction) for episode in episodes]
    done = edit(where.lake, dataset, wanted, who=getpass.getuser())
    _say(
        screen,
        done,
        f"{counted(done.told['num_episodes'], 'episode')} relabelled, videos untouched",
        "they say so already",
    )
    screen.line(f"  train on it: ./vlaloop run RECIPE --set ingest.source=lake:{dataset}@{done.version}")
    return _answer(screen, "relabel", done)


def merge(where: Places, datasets: Sequence[str], into: str, screen: Screen) -> int:
    """The episodes of `datasets` behind those of `into`."""
    from data_lake.edits.merge import merge as edit

    screen.line(f"merging {', '.join(datasets)} into {into}: rows and videos are compared and copied")
    done = edit(where.lake, datasets, into, who=getpass.getuser())
    _say(screen, done, f"{counted(done.told['num_episodes'], 'episode')} added", "nothing is new")
    if done.told["repeated"]:
        screen.line(f"  not taken twice: {counted(done.told['repeated'], 'recording')} there already")
    for each in done.told.get("reworded", [])[:SHOWN]:
        screen.line(
            f"  {each['from']} episode {each['episode_index']} is {into} episode {each['kept']} under other words"
        )
    if reworded := len(done.told.get("reworded", [])):
        screen.line(f"  {counted(reworded, 'recording')} kept the words that {into} has; relabel gives them others")
    return _answer(screen, "merge", done)


def compact(where: Places, dataset: str, forget_before: int | None, screen: Screen) -> int:
    """Fewer files of the same content; then, where asked, old versions are given up."""
    from data_lake.edits.compact import compact as edit

    screen.line(f"compacting {dataset}: every row and video is read back before the version is one")
    done = edit(where.lake, dataset, who=getpass.getuser())
    files = ", ".join(f"{name} {each['fragments_before']} -> {each['fragments']}" for name, each in done.told.items())
    _say(screen, done, f"fragments: {files}", "its files are few and large already")
    given, kept = _forget(where, dataset, forget_before, screen)
    return _answer(screen, "compact", done, given_up=given, kept={str(version): why for version, why in kept.items()})


def _forget(where: Places, dataset: str, before: int | None, screen: Screen) -> tuple[list[int], dict[int, str]]:
    if before is None:
        return [], {}
    from data_lake.edits.forget import forget_before

    given, kept = forget_before(where.lake, dataset, before, who=getpass.getuser())
    screen.line(f"  given up: {', '.join(map(str, given)) or 'none'} (./vlaloop gc takes their files after its grace)")
    for version, why in kept.items():
        screen.line(f"  kept: version {version}, {why}")
    return given, kept


def tag(where: Places, dataset: str, name: str, move: bool, screen: Screen) -> int:
    """`name` means that version of the data set from now on."""
    from data_lake.edits.tags import put_tag
    from data_lake.version import open_version

    version = open_version(where.lake, dataset)
    put = put_tag(version.root, name, version.manifest.version, who=getpass.getuser(), move=move)
    screen.line(f"{version.root.name}@{name} is {version.name}")
    screen.answer({"command": "tag", "ok": True, "result": {"dataset": version.root.name, **asdict(put)}})
    return DONE


def _say(screen: Screen, done: "Edited", what: str, nothing: str) -> None:
    screen.line(f"{done.dataset}@{done.version}: " + (what if done.is_new else f"unchanged, {nothing}"))


def _answer(screen: Screen, command: str, done: "Edited", **more: Any) -> int:
    screen.answer({"command": command, "ok": True, "result": {**asdict(done), **more}})
    return DONE
