"""Which recordings a data set trains on and which it holds out, whatever is said of them: what a mixture must
not confuse."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from data_lake import lake_meta
from data_lake.edits.contents import Contents
from data_lake.files import LakePath, read_bytes
from data_lake.tables import read_manifest
from data_lake.version import version_at
from data_lake.words import counted
from errors import UserError

FILE = "recordings.json"
REBUILD = 'the same command with --rebuild preprocess:NAME --why "mixed"'


def write_recordings(view_folder: LakePath, root: LakePath, held_out: Collection[int], out: Path) -> None:
    """Recordings of the view that ingest wrote to `view_folder`, by split, with source numbers. root: of its data set,
    which tells them where the view does not."""
    found: dict[str, dict[str, int]] = {"trains_on": {}, "holds_out": {}}
    view = json.loads(read_bytes(view_folder / "episodes.json"))
    told = _recordings(view, root)
    for entry, recording in zip(view["episodes"], told, strict=True):
        split = "holds_out" if entry["source_episode"] in held_out else "trains_on"
        found[split][recording] = entry["source_episode"]
    (out / FILE).write_text(json.dumps(found) + "\n")


def _recordings(view: dict[str, Any], root: LakePath) -> list[str]:
    entries = view["episodes"]
    if all(entry.get(lake_meta.RECORDING) for entry in entries):
        return [entry[lake_meta.RECORDING] for entry in entries]
    manifest = read_manifest(root, view["version"])
    assert manifest is not None, "what the view is of"
    version = version_at(root, manifest)
    contents = Contents(version)
    return [contents.recording(version.episodes[entry["episode_index"]]) for entry in entries]


def check_apart(folders: Sequence[LakePath], names: Sequence[str]) -> None:
    """Raises UserError PACK-011 when one component trains on a recording that another one (or it itself) holds out,
    naming both; PACK-012 for samples of which nobody noted what they were made of."""
    found = []
    for folder, name in zip(folders, names, strict=True):
        told = json.loads(read_bytes(folder / FILE)) if (folder / FILE).exists() else {}
        if told.keys() != {"trains_on", "holds_out"}:
            what = f"{name} was preprocessed before it was noted which recordings it trains on"
            raise UserError("PACK-012", what, where=str(folder), next_step=REBUILD)
        found.append(told)
    for name, holding in zip(names, found, strict=True):
        for other, training in zip(names, found, strict=True):
            if both := holding["holds_out"].keys() & training["trains_on"].keys():
                numbers = sorted(training["trains_on"][each] for each in both)
                learnt = f"{other} trains on {counted(len(both), 'recording')}"
                raise UserError(
                    "PACK-011",
                    f"{learnt} that {name} holds out: its score would prove nothing",
                    where=f"{other} · source episodes {', '.join(map(str, numbers[:8]))}",
                    next_step="hold them out there too (preprocess.heldout_episodes), or leave them out of that view",
                )
