"""One rule for what an instruction is, wherever it comes from: a listed task, a row, a label given later."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.edits.relabel import relabel
from data_lake.sources import open_source
from data_lake.sources.instructions import MAX_BYTES, fault, instruct_rows
from errors import UserError
from tests.data_lake.recordings import change_episodes, change_rows, write_lines, write_v2, write_v3
from tests.data_lake.seen import LENGTHS, ingest

FAULTS: list[tuple[Any, str]] = [
    (None, "LAKE-231"),
    (7, "LAKE-231"),
    (True, "LAKE-231"),
    (["push"], "LAKE-231"),
    ({"en": "push"}, "LAKE-231"),
    ("push\0lift", "LAKE-231"),
    ("push \ud83d", "LAKE-231"),
    ("", "LAKE-024"),
    (" \t\n", "LAKE-024"),
    ("é" * (MAX_BYTES // 2) + "!", "LAKE-030"),
]


@pytest.mark.parametrize(("said", "code"), FAULTS)
def test_what_is_no_instruction(said: Any, code: str) -> None:
    found = fault(said)
    assert found is not None and found[0] == code and found[1]


@pytest.mark.parametrize("said", ["push", "é" * (MAX_BYTES // 2), "推", " push "])
def test_what_is_one(said: str) -> None:
    assert fault(said) is None


@given(texts=st.lists(st.text(max_size=4), min_size=1, max_size=4))
def test_rows_keep_what_is_an_instruction_and_nothing_else(texts: list[str]) -> None:
    rows, instruction, found = instruct_rows(pa.table({"x": range(len(texts))}), texts, (), 0)
    codes = {each[0] for text in texts if (each := fault(text)) is not None}
    assert {item.code for item in found} == codes
    if "LAKE-231" not in codes:
        assert rows["task"].to_pylist() == [text if fault(text) is None else "" for text in texts]
        assert instruction == rows["task"][0].as_py()
    assert all(item.row is None or fault(texts[item.row]) is not None for item in found)


def listed_as(source: Path, said: Any) -> Path:
    """Task 0, that of episodes 0 and 2."""
    write_lines(source / "meta/tasks.jsonl", [{"task_index": 0, "task": said}, {"task_index": 1, "task": "lift"}])
    for number in (0, 2):
        change_episodes(source, number, tasks=[said])
    return source


@pytest.mark.parametrize(("said", "code"), [FAULTS[at] for at in (0, 3, 5, 6, 8)])
def test_a_listed_task(said: Any, code: str, tmp_path: Path) -> None:
    source = listed_as(write_v2(tmp_path / "v2", LENGTHS), said)
    change_rows(source / "data/chunk-000/episode_000001.parquet", task_index=[1] * LENGTHS[1])
    done = ingest(source, tmp_path / "cart")
    told = {item.code for item in done.findings if item.episode == 0}
    assert code in told and "LAKE-062" not in told
    instructions = {each["source_episode"]: each["instruction"] for each in done.view["episodes"]}
    assert instructions == ({0: "", 1: "lift", 2: ""} if code == "LAKE-024" else {1: "lift"})


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize("other", ["throw it away", "Push", None])
def test_an_index_with_two_sentences(other: str | None, version: str, tmp_path: Path) -> None:
    """Neither the first nor the last is believed; the same sentence twice is one."""
    source = write_v2(tmp_path / "v2", LENGTHS)
    if version == "v3.0":
        source = write_v3(tmp_path / "v3", source, LENGTHS)
    file = source / ("meta/tasks.jsonl" if version == "v2.1" else "meta/tasks.parquet")

    def listing(*said: str | None) -> None:
        rows = [{"task_index": index, "task": text} for index, text in zip((1, 0, 0), said, strict=True)]
        if version == "v2.1":
            write_lines(file, rows)
        else:
            pq.write_table(pa.Table.from_pylist(rows), file)

    listing("lift", "push", other)
    with pytest.raises(UserError) as refused:
        open_source(source)
    assert refused.value.code == "LAKE-004" and refused.value.where == str(file)
    assert f"task 0 twice, as 'push' and as {other!r}" in refused.value.message
    listing("lift", "push", "push")
    open_source(source)


def test_a_null_among_the_tasks_of_v3(tmp_path: Path) -> None:
    source = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2", LENGTHS), LENGTHS)
    file = source / "meta/tasks.parquet"
    pq.write_table(pa.table({"task_index": [0, 1], "task": [None, "lift the cube"]}), file)
    done = ingest(source, tmp_path / "cart")
    assert [each["instruction"] for each in done.view["episodes"]] == ["lift the cube"]
    assert any(item.code == "LAKE-231" and "task 0" in item.message for item in done.findings)


def test_a_label_given_later(tmp_path: Path) -> None:
    ingest(write_v2(tmp_path / "v2", LENGTHS), tmp_path / "datasets/cart")
    for said in (said for said, _ in FAULTS if isinstance(said, str)):
        with pytest.raises(UserError) as refused:
            relabel(tmp_path, "cart", [("0", said)], who="me")
        assert refused.value.code == "LAKE-181"
