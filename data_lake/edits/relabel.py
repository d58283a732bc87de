"""Other instructions for episodes of a data set, as a new version: videos and all other rows stay where they are."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from lance.fragment import FragmentMetadata

from data_lake import lake_meta
from data_lake.asked import episodes_asked
from data_lake.edits.contents import Contents
from data_lake.edits.edit import Edited, ensure_whole, repeated, version_before
from data_lake.edits.labels import Label
from data_lake.files import LakePath
from data_lake.sources.instructions import fault
from data_lake.tables import dataset_root, read_meta
from data_lake.version import DatasetVersion
from data_lake.writer import Writer
from errors import UserError

SHOWN = 20


def relabel(lake: LakePath, dataset: str, labels: Sequence[Label], *, who: str) -> Edited:
    """All rows of the named episodes say their new instruction; their content hashes are those of such recordings.

    Raises UserError LAKE-002 without such a data set, LAKE-181 for an episode that gets two labels and for what is
    no instruction, LAKE-207 and LAKE-208 for episodes that are not there, LAKE-186 when one is not what was
    ingested.
    """
    root = dataset_root(lake, dataset)

    def attempt(writer: Writer) -> Edited | None:
        version = version_before(lake, dataset, writer)
        wanted = _wanted(version, labels)
        changed = {number: text for number, text in wanted.items() if _says_else(version.episodes[number], text)}
        told = {"num_episodes": len(changed), "instructions": sorted(set(changed.values()))[:SHOWN]}
        if not changed:
            return Edited(dataset=dataset, version=version.manifest.version, is_new=False, told=told)
        contents = Contents(version)
        hashes = {number: contents.relabelled(version.episodes[number], text) for number, text in changed.items()}
        tasks = _tasks(version, changed)
        writer.put_instead("frames", _frames(version, writer, {number: tasks[changed[number]] for number in changed}))
        manifest = writer.commit(
            _meta(version, changed, hashes, tasks),
            num_episodes=len(version.episodes),
            edit={"relabel": told, "by": who},
            check=ensure_whole(root, version.episodes, stored=False),
        )
        return manifest and Edited(dataset=dataset, version=manifest.version, is_new=True, told=told)

    return repeated(root, attempt)


def _wanted(version: DatasetVersion, labels: Sequence[Label]) -> dict[int, str]:
    """Instruction by number in the lake."""
    wanted: dict[int, str] = {}
    for asked, text in labels:
        if (found := fault(text)) is not None:
            what = f"not an instruction: {text[:60]!r} ({found[1]})"
            raise UserError("LAKE-181", what, where=asked, done="nothing was changed", next_step="say what is done")
        for number in episodes_asked(version, asked):
            if wanted.setdefault(number, text) != text:
                raise UserError(
                    "LAKE-181",
                    f"two instructions for episode {number}: {wanted[number]!r} and {text!r}",
                    where=version.name,
                    done="nothing was changed",
                    next_step="name each episode once",
                )
    return wanted


def _tasks(version: DatasetVersion, changed: Mapping[int, str]) -> dict[str, int]:
    """Those of the version, and the new ones: each takes the number of a text that nobody says any more, or a further
    one. Numbers stay positions, as LeRobot reads them."""
    said = {text for row in version.episodes if row["episode_index"] not in changed for text in row["tasks"]}
    said.update(changed.values())
    numbers = {number: text for text, number in version.tasks.items()}
    free = iter([number for number, text in sorted(numbers.items()) if text not in said])
    for text in dict.fromkeys(changed.values()):
        if text not in version.tasks:
            numbers[next(free, len(numbers))] = text
    return {text: number for number, text in sorted(numbers.items())}


def _says_else(episode: Mapping[str, Any], text: str) -> bool:
    return episode["instruction"] != text or list(episode["tasks"]) != [text]


def _frames(version: DatasetVersion, writer: Writer, tasks: Mapping[int, int]) -> list[FragmentMetadata]:
    """All fragments of the version, those anew that hold rows of the episodes in `tasks` (number to task index)."""
    fragments, begin = list[FragmentMetadata](), 0
    spans = [(*_span(version.episodes[number]), task) for number, task in sorted(tasks.items())]
    for fragment in version.table("frames").get_fragments():
        end = begin + fragment.count_rows()
        inside = [(first, last, task) for first, last, task in spans if first < end and last > begin]
        if inside:
            rows = fragment.to_table()
            task_T = rows["task_index"].to_numpy().copy()
            for first, last, task in inside:
                task_T[max(first - begin, 0) : last - begin] = task
            place = rows.column_names.index("task_index")
            fragments += writer.write_frames(rows.set_column(place, rows.schema.field(place), pa.array(task_T)))
        else:
            fragments.append(fragment.metadata)
        begin = end
    return fragments


def _span(episode: Mapping[str, Any]) -> tuple[int, int]:
    return episode["dataset_from_index"], episode["dataset_to_index"]


def _meta(
    version: DatasetVersion, labels: Mapping[int, str], hashes: Mapping[int, str], tasks: Mapping[str, int]
) -> dict[str, bytes]:
    meta = read_meta(version.root, version.manifest)
    known = lake_meta.read_table(meta[lake_meta.EPISODES])
    rows = [dict(row) for row in version.episodes]
    for number, text in labels.items():
        row = rows[number]
        came_as = row.get(lake_meta.AS_IT_CAME) or row["content_hash"]
        row[lake_meta.AS_IT_CAME] = came_as if came_as != hashes[number] else None
        row |= {"instruction": text, "tasks": [text], "content_hash": hashes[number]}
    for name in ("instruction", "tasks", "content_hash", lake_meta.AS_IT_CAME):
        column = lake_meta.column(name, [row.get(name) for row in rows])
        place = known.column_names.index(name) if name in known.column_names else None
        known = known.append_column(name, column) if place is None else known.set_column(place, name, column)
    return meta | {
        lake_meta.INFO: json.dumps({**version.info, "total_tasks": len(tasks)}, indent=1).encode(),
        lake_meta.TASKS: lake_meta.parquet_bytes(lake_meta.tasks_table(tasks)),
        lake_meta.EPISODES: lake_meta.parquet_bytes(known),
    }
