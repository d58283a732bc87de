"""Which recordings a data set trains on and which it holds out, by content: what a mixture must not confuse."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from data_lake.files import LakePath, read_bytes
from errors import UserError

FILE = "recordings.json"
REBUILD = 'the same command with --rebuild preprocess:NAME --why "mixed"'


def write_recordings(view_folder: LakePath, held_out: Collection[int], out: Path) -> None:
    """Content hashes of the episodes of the view that ingest wrote to `view_folder`, by split, with source numbers."""
    found: dict[str, dict[str, int]] = {"training": {}, "held_out": {}}
    for entry in json.loads(read_bytes(view_folder / "episodes.json"))["episodes"]:
        split = "held_out" if entry["source_episode"] in held_out else "training"
        found[split][entry["content_hash"]] = entry["source_episode"]
    (out / FILE).write_text(json.dumps(found) + "\n")


def check_apart(folders: Sequence[LakePath], names: Sequence[str]) -> None:
    """Raises UserError PACK-011 when one component trains on a recording that another one (or it itself) holds out,
    naming both; PACK-012 for samples of which nobody noted what they were made of."""
    found = []
    for folder, name in zip(folders, names, strict=True):
        if not (folder / FILE).exists():
            what = f"{name} was preprocessed before mixtures were known"
            raise UserError("PACK-012", what, where=str(folder), next_step=REBUILD)
        found.append(json.loads(read_bytes(folder / FILE)))
    for name, holding in zip(names, found, strict=True):
        for other, training in zip(names, found, strict=True):
            if both := sorted(holding["held_out"].keys() & training["training"].keys()):
                numbers = sorted(training["training"][each] for each in both)
                raise UserError(
                    "PACK-011",
                    f"{other} trains on {len(both)} recordings that {name} holds out: its score would prove nothing",
                    where=f"{other} · source episodes {', '.join(map(str, numbers[:8]))}",
                    next_step="hold them out there too (preprocess.heldout_episodes), or leave them out of that view",
                )
