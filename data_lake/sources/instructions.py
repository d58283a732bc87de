"""Which words an episode is told: real language only. Marks such as GR00T's "valid" never become a prompt."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from data_lake.findings import Finding, finding
from errors import UserError

MAX_BYTES = 4096
NO_META = "give all episodes one: --set 'ingest.read.instruction==lift the cube'"
"""What to do about no instruction where there is no meta/tasks to mend."""
_VALIDITY = ".validity"
_LANGUAGE = ("task_description", "instruction", "language", "task")


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """tasks: index to text. ignore: marks by request. annotations: the columns of task indices that the source
    declares (GR00T's meta/modality.json); others of that name may be stale copies and are not believed. wordless:
    index to what is listed in place of a text."""

    tasks: Mapping[int, str]
    ignore: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    wordless: Mapping[int, str] = field(default_factory=dict)


def fault(said: Any) -> tuple[str, str] | None:
    """(code, why) where `said` is no instruction, None where it is one: a text that is not blank, of up to MAX_BYTES in
    UTF-8, without NUL. The one rule of ingest, doctor and relabel."""
    if not isinstance(said, str):
        return "LAKE-231", f"it is {said!r:.60}, no text"
    if not said.strip():
        return "LAKE-024", "it is empty"
    if "\0" in said or any("\ud800" <= letter <= "\udfff" for letter in said):
        return "LAKE-231", f"{said[:60]!r} holds what is no letter (NUL, or half of a UTF-16 pair)"
    num_bytes = len(said.encode())
    return ("LAKE-030", f"{num_bytes:,} bytes") if num_bytes > MAX_BYTES else None


def listed_tasks(path: Path, listed: Iterable[tuple[int, Any]]) -> tuple[dict[int, str], dict[int, str]]:
    """Of the task list in `path`: index to text, and to what stands in place of one. Raises UserError LAKE-004 for two
    things under one index: nothing tells which of them its rows mean."""
    every: dict[int, Any] = {}
    for index, said in listed:
        if repr(every.setdefault(index, said)) != repr(said):
            raise UserError(
                "LAKE-004",
                f"{path.name} lists task {index} twice, as {every[index]!r:.200} and as {said!r:.200}",
                where=str(path),
                done="nothing was read",
                next_step=f"leave in {path.name} the sentence that the rows with task_index {index} mean",
            )
    tasks = {index: said for index, said in every.items() if isinstance(said, str)}
    return tasks, {index: repr(said) for index, said in every.items() if index not in tasks}


def tasks_of(listed: Any, episode: int) -> tuple[tuple[str, ...], list[Finding]]:
    """The texts among an episode's listed tasks, and LAKE-231 where another thing is."""
    several = listed if isinstance(listed, list) else [] if listed is None else [listed]
    faults = [fault(said) for said in several if not isinstance(said, str)]
    findings = [finding(found[0], found[1], episode=episode) for found in faults[:1] if found]
    return tuple(said for said in several if isinstance(said, str)), findings


def language_columns(annotations: Iterable[str]) -> list[str]:
    """Annotation columns that point at language, most telling first; those of validity left out."""

    def rank(name: str) -> int:
        return next((place for place, word in enumerate(_LANGUAGE) if word in name), len(_LANGUAGE))

    named = [name for name in annotations if not name.endswith(_VALIDITY) and rank(name) < len(_LANGUAGE)]
    return sorted(named, key=rank)


def _marks(rows: pa.Table, words: Vocabulary) -> set[str]:
    """Pseudo-tasks of this episode: those ignored on request, and what its validity columns point at."""
    found = set(words.ignore)
    for name in words.annotations:
        if name.endswith(_VALIDITY) and name in rows.column_names:
            found |= {words.tasks[index] for index in rows[name].unique().to_pylist() if index in words.tasks}
    return found


def _spoken(
    rows: pa.Table, listed: Sequence[str], words: Vocabulary, marks: set[str], episode: int
) -> tuple[list[str | None], list[Finding]]:
    """Per row what its annotation column says, else its task_index; None where neither is language."""
    findings: list[Finding] = []
    for name in (*language_columns(words.annotations), "task_index"):
        if name not in rows.column_names or not (words.tasks or words.wordless):
            continue
        indices = rows[name].to_pylist()
        texts = [None if (text := words.tasks.get(index)) in marks else text for index in indices]
        if (odd := next((index for index in indices if index in words.wordless), None)) is not None:
            findings.append(finding("LAKE-231", f"task {odd} is {words.wordless[odd]:.60}", episode=episode))
        strange = [row for row, text in enumerate(texts) if text is not None and text not in listed] if listed else []
        if strange:
            findings.append(_unlisted(name, texts, strange, episode))
        if name == "task_index":
            return texts, findings + _pointless(indices, words, episode)
        if not strange and any(texts):
            return texts, findings
    return [None] * rows.num_rows, findings


def _unlisted(name: str, texts: Sequence[str | None], strange: Sequence[int], episode: int) -> Finding:
    """What rows say that their episode does not list: all of them, then they are believed; some, then nothing is."""
    some = name == "task_index" and len(strange) < sum(text is not None for text in texts)
    row = strange[0]
    detail = f"{name} says {texts[row]!r:.80} in {len(strange)} of {len(texts)} rows, the first is row {row}"
    return finding("LAKE-247" if some else "LAKE-059", detail, episode=episode, row=row)


def _pointless(indices: Sequence[Any], words: Vocabulary, episode: int) -> list[Finding]:
    """LAKE-246 for task indices that are not in the list."""
    unknown = [row for row, index in enumerate(indices) if index not in words.tasks and index not in words.wordless]
    if not unknown:
        return []
    detail = f"task {indices[unknown[0]]} in {len(unknown)} of {len(indices)} rows, the first is row {unknown[0]}"
    return [finding("LAKE-246", detail, episode=episode, row=unknown[0])]


def instruct_rows(
    rows: pa.Table, said: Sequence[str], ignore: tuple[str, ...], episode: int
) -> tuple[pa.Table, str, list[Finding]]:
    """As `instruct`, where the source has the words themselves, one text per row."""
    places = {text: place for place, text in enumerate(dict.fromkeys(said))}
    indices = pa.array([places[text] for text in said], pa.int64())
    words = Vocabulary(tasks=dict(enumerate(places)), ignore=ignore)
    told, text, findings = instruct(rows.append_column("task_index", indices), tuple(places), words, episode)
    return told, text, [replace(item, fix=NO_META) if item.code == "LAKE-024" else item for item in findings]


def instruct(
    rows: pa.Table, listed: Sequence[str], words: Vocabulary, episode: int
) -> tuple[pa.Table, str, list[Finding]]:
    """`rows` with a column `task`, the episode's instruction, and what was odd about it.

    A row's words are those of its annotation column, else of its task_index, else the episode's first listed
    task that is language. A column `task` of the source's own is kept as `source_task`.
    """
    marks = _marks(rows, words)
    language = [task for task in listed if task not in marks]
    fallback = language[0] if language else ""
    said, findings = _spoken(rows, listed, words, marks, episode)
    texts = [fallback if text is None else text for text in said]
    for mark in sorted(set(listed) & marks):
        findings.append(finding("LAKE-050", f"{mark!r} stands beside {len(language)} of language", episode=episode))
    faults = {text: found for text in dict.fromkeys(texts) if (found := fault(text)) is not None}
    findings += _told(faults, texts, episode)
    if any(code != "LAKE-024" for code, _ in faults.values()):
        texts = [""] * len(texts)  # not once per row in memory
    elif faults:
        texts = ["" if text in faults else text for text in texts]
    instruction = texts[0] if texts else fallback
    kept = ["source_task" if name == "task" else name for name in rows.column_names]
    return rows.rename_columns(kept).append_column("task", pa.array(texts, pa.string())), instruction, findings


def _told(faults: Mapping[str, tuple[str, str]], texts: Sequence[str], episode: int) -> Iterable[Finding]:
    """One finding per code; the row where it is not the first."""
    said = {code: (text, why) for text, (code, why) in reversed(list(faults.items()))}
    for code, (text, why) in sorted(said.items()):
        row = texts.index(text)
        detail = (why if code != "LAKE-024" else "") if row == 0 else f"{why} in row {row}"
        yield finding(code, detail, episode=episode, row=row or None)
