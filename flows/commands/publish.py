"""`path` and `publish`: a version of a data set where, or as, others open it."""

import shlex
from pathlib import Path

from data_lake.words import counted
from flows.commands.episodes import show_findings
from flows.places import Places
from flows.screen import DONE, Screen


def path(where: Places, dataset: str, screen: Screen) -> int:
    """The folder that LeRobot opens (its native Lance layout), made at the first call for a version."""
    from data_lake.published import publish_lance
    from data_lake.version import open_version

    version = open_version(where.lake, dataset)
    folder, findings = publish_lance(version)
    show_findings([item.as_json() for item in findings], screen.aside)
    screen.line(str(folder.resolve()))
    screen.answer({"dataset": version.root.name, "version": version.manifest.version, "path": str(folder.resolve())})
    return DONE


def publish(where: Places, dataset: str, folder: Path, form: str, screen: Screen) -> int:
    """A LeRobot folder of that form, whole or not at all."""
    from data_lake.exports import publish_folder
    from data_lake.findings import fold
    from data_lake.version import open_version

    version = open_version(where.lake, dataset)
    findings = [item.as_json() for item in fold(publish_folder(version, folder, form))]
    show_findings(findings, screen.line)
    held = version.manifest
    screen.line(
        f"{version.name} as {form}: {counted(held.num_episodes, 'episode')}, {counted(held.num_frames, 'frame')}"
        f" in {shlex.quote(str(folder))}"
    )
    result = {
        "dataset": version.root.name,
        "version": version.manifest.version,
        "form": form,
        "path": str(folder.resolve()),
        "findings": findings,
    }
    screen.answer({"command": "publish", "ok": True, "result": result})
    return DONE
