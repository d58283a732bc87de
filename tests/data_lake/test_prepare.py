"""A block's files and their description: last, once, and the same whoever made them; memory for some images only."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from data_lake.blocks import Block, blocks_of
from data_lake.fragments import data_file
from data_lake.prepare import (
    SAMPLES,
    STEPS,
    Workshop,
    block_json,
    block_of,
    description,
    marks_in,
    prepare_block,
    read_description,
)
from errors import UserError
from flows.places import ROOT
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import request_for
from tests.data_lake.peak_memory import make


def work(coded: CodedLake, out: Path, **request: object) -> tuple[str, Block]:
    """What a worker is told, and the first block."""
    asked = request_for(**request)
    workshop = Workshop.of(coded.view, coded.dataset, asked, out)
    assert Workshop.loads(workshop.dumps()).dumps() == workshop.dumps()
    return workshop.dumps(), blocks_of(coded.view, asked, [0] * 7)[0]


def test_the_description_names_what_is_there(coded: CodedLake, tmp_path: Path) -> None:
    told, block = work(coded, tmp_path)
    prepare_block(told, block_json(block))
    found = read_description(tmp_path, block.key)
    assert (tmp_path / SAMPLES / "data" / data_file(found["samples"])).is_file()
    assert (tmp_path / STEPS / "data" / data_file(found["steps"])).is_file()
    assert (found["num_samples"], found["num_views"]) == (5, 10)
    assert (found["action_dim"], found["proprio_dim"]) == (4, 4)
    assert [asdict(marks)["still"] for marks in marks_in(found)] == [()]


def test_who_comes_second_changes_nothing(coded: CodedLake, tmp_path: Path) -> None:
    told, block = work(coded, tmp_path)
    prepare_block(told, block_json(block))
    first = (tmp_path / description(block.key)).read_bytes()
    prepare_block(told, block_json(block))
    assert (tmp_path / description(block.key)).read_bytes() == first


def test_what_fails_leaves_no_description(coded: CodedLake, tmp_path: Path) -> None:
    told, block = work(coded, tmp_path)
    wrong = json.loads(told)
    wrong["meaning"]["fps"] = 40.0
    with pytest.raises(UserError, match="DECODE-00"):
        prepare_block(json.dumps(wrong), block_json(block))
    assert not list(tmp_path.glob("blocks/*"))


def test_a_block_survives_being_text(coded: CodedLake) -> None:
    for block in blocks_of(coded.view, request_for(), [0, 0, 1, 0, 0, 0, 1]):
        assert block_of(block_json(block)) == block


@pytest.mark.slow
def test_memory_does_not_grow_with_the_episodes(tmp_path: Path) -> None:
    """Ten times the episodes, the same peak: the images of 27 more are over 230 MiB."""
    few, many = (_peak_mib(tmp_path / str(count), count) for count in (3, 30))
    assert many < few + 100


def _peak_mib(folder: Path, count: int) -> int:
    make(folder, count)
    command = [sys.executable, "-m", "tests.data_lake.peak_memory", str(folder)]
    return int(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
