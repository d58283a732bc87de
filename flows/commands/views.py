"""`view` and `views`: choose episodes of a data set, see what is kept, and save the choice under a name."""

import getpass
from collections import Counter
from dataclasses import asdict
from typing import Any

from data_lake.words import counted
from errors import UserError
from flows.places import Places
from flows.screen import DONE, FAILED, Screen

SHOWN_INSTRUCTIONS = 12


def view(where: Places, dataset: str, name: str, choice: tuple[str, str, str], screen: Screen) -> int:
    """Show what a view keeps of the data set's version; save it when `choice` (where, episodes, exclude) is given.

    Raises UserError LAKE-209 for a choice that keeps nothing, and whatever choosing raises: nothing is saved then.
    """
    from data_lake.curation import Choice, choose
    from data_lake.head import counted_once
    from data_lake.saved_views import open_saved, revisions, save
    from data_lake.version import open_version

    version = open_version(where.lake, dataset)
    asked = Choice(where=choice[0], episodes=choice[1], exclude=choice[2])
    is_new = asked != Choice()
    saved = None if is_new else open_saved(version.root, name)
    chosen = saved.choice if saved else asked
    kept = counted_once(choose(version, chosen))
    _show(version.name, chosen, version.episodes, kept, screen)
    if not kept:
        what = f"the view {name!r} keeps no episode of {version.name}"
        raise UserError("LAKE-209", what, done="nothing was saved", next_step="widen it; `where` is SQL over episodes")
    replaced = None
    if saved is None:
        replaced = open_saved(version.root, name) if revisions(version.root, name) else None
        number = version.manifest.version
        saved = save(version.root, name, asked, who=getpass.getuser(), version=number, num_episodes=len(kept))
    if replaced is not None and replaced.revision < saved.revision:
        screen.line(f"  replaces {replaced.title}: {_told(asdict(replaced.choice))}")
    screen.line(f"  {saved.title} · saved {saved.at[:16]} by {saved.who}")
    screen.line(f"  use: --set ingest.source=lake:{version.root.name}/{name}")
    figures = {"episodes": len(kept), "frames": sum(row["length"] for row in kept)}
    numbers = [row["episode_index"] for row in kept]
    result = saved.as_json() | {"dataset": version.name, "kept": figures, "of": _all(version.episodes)}
    screen.answer({"command": "view", "ok": True, "result": result | {"episode_indices": numbers}})
    return DONE


def views(where: Places, dataset: str, screen: Screen) -> int:
    """The newest revision of every saved view of a data set, and what it kept when it was saved."""
    from data_lake.saved_views import saved_views
    from data_lake.version import open_version

    version = open_version(where.lake, dataset)
    found, wrong = saved_views(version.root)
    rows = []
    for each in found:
        kept = f"{each.num_episodes} at version {each.version}"
        rows.append((each.title, kept, each.at[:16].replace("T", " "), each.who, _told(each.as_json()["choice"])))
    if found:
        titles = ("view", "kept", "saved", "by", "choice")
        screen.table(titles, rows, whole=titles[:-1])
    elif not wrong:
        screen.line(f"{version.root.name} has no saved views; ./vlaloop view {version.root.name} NAME --where …")
    for error in wrong:
        screen.aside(f"error {error}")
    screen.answer({"command": "views", "ok": not wrong, "result": [each.as_json() for each in found]})
    return FAILED if wrong else DONE


def _show(title: str, choice: Any, episodes: Any, kept: Any, screen: Screen) -> None:
    """Kept and left out by instruction, the most frequent first, and in all."""
    inside, everything = (Counter(row["instruction"] for row in rows) for rows in (kept, episodes))
    shown = everything.most_common(SHOWN_INSTRUCTIONS)
    rows = [(text, str(inside[text]), str(count - inside[text])) for text, count in shown]
    screen.table(("instruction", "kept", "left out"), rows, right=("kept", "left out"))
    if (more := len(everything) - SHOWN_INSTRUCTIONS) > 0:
        screen.line(f"… and {counted(more, 'more instruction')}")
    frames = sum(row["length"] for row in kept)
    screen.line(
        f"  {len(kept):,} of {counted(len(episodes), 'episode')} of {title}"
        f" · {frames:,} of {counted(_all(episodes)['frames'], 'frame')}"
    )
    screen.line(f"  {_told({'where': choice.where, 'episodes': choice.episodes, 'exclude': choice.exclude})}")


def _told(choice: dict[str, str]) -> str:
    return " · ".join(f"{name} {text}" for name, text in choice.items() if text)


def _all(episodes: Any) -> dict[str, int]:
    return {"episodes": len(episodes), "frames": sum(row["length"] for row in episodes)}
