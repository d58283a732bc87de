"""Files of labels: what is written is what is read, or the line is named."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake.edits.labels import read_labels
from errors import UserError


def test_files_of_labels(tmp_path: Path) -> None:
    wanted = [("0", "wait"), ("garage:1", 'say "go", then go')]
    lines, table = tmp_path / "labels.jsonl", tmp_path / "labels.csv"
    lines.write_text(
        '{"episode": 0, "instruction": "wait"}\n\n'
        + '{"episode": "garage:1", "instruction": "say \\"go\\", then go"}\n'
    )
    table.write_text('episode,instruction\n0,wait\ngarage:1,"say ""go"", then go"\n')
    assert read_labels(lines) == read_labels(table) == wanted


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", '{"episode": 0, "instruction": "wait"}\n{"episode"', "line 2"),
        ("a.jsonl", '{"instruction": "wait"}', "line 1"),
        ("a.jsonl", '{"episode": 0, "instruction": null}', "line 1"),
        ("a.jsonl", "[1]", "line 1"),
        ("a.csv", "episode,instruction\n0,wait\n1\n", "line 3"),
        ("a.csv", "episode,task\n0,wait\n", "line 1"),
        ("a.csv", "episode,instruction\n0,open the drawer, then close it\n", "line 2"),
        ("a.csv", 'episode,instruction\n\n0,wait\n1,"go\n2,stop\n3,wait\n', "line 4"),
        ("a.csv", 'episode,instruction\n0,"wait" then go\n', "line 2"),
        ("a.csv", "episode,instruction,episode\n0,wait,1\n", "line 1"),
        ("a.jsonl", '{"episode": true, "instruction": "wait"}', "line 1"),
        ("a.jsonl", '{"episode": 1.5, "instruction": "wait"}', "line 1"),
        ("a.csv", "episode,instruction\n", "a.csv"),
        ("a.jsonl", "", "a.jsonl"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as refused:
        read_labels(tmp_path / name)
    assert refused.value.code == "LAKE-187" and words in refused.value.where


def test_no_file_of_labels(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_labels(tmp_path / "nothing.csv")


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1)


@given(words=st.lists(WORDS, min_size=1, max_size=4), mark=st.sampled_from([b"", b"\xef\xbb\xbf"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_written_is_read(tmp_path: Path, words: list[str], mark: bytes) -> None:
    """Commas, quotes, line ends of every alphabet, in a spreadsheet or in JSON, with a byte order mark or not."""
    table = io.StringIO(newline="")
    csv.writer(table).writerows([("episode", "instruction"), *enumerate(words)])
    lines = [
        json.dumps({"episode": number, "instruction": text}, ensure_ascii=False) for number, text in enumerate(words)
    ]
    (tmp_path / "a.csv").write_bytes(mark + table.getvalue().encode())
    (tmp_path / "a.jsonl").write_bytes(mark + "\n".join(lines).encode())
    wanted = [(str(number), text) for number, text in enumerate(words)]
    assert read_labels(tmp_path / "a.csv") == read_labels(tmp_path / "a.jsonl") == wanted
