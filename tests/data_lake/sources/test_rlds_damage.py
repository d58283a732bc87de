"""RLDS data sets that are damaged: it costs the episodes that it hits, is named, and nothing else changes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake.sources.rlds import RldsFolder
from data_lake.specs import ReadSpec
from errors import UserError
from tests.data_lake.rlds_recordings import (
    bad,
    change_info,
    encoded,
    examined,
    example,
    framed,
    one_shard,
    pixels,
    record,
    shard_path,
    three,
    write_rlds,
)

AT_10_HZ = ReadSpec(fps="10")


@pytest.mark.parametrize(
    ("changes", "codes", "words"),
    [
        ({"steps__action": None}, {"LAKE-114"}, "steps/action is missing"),
        ({"steps__action": np.zeros(10, np.float32)}, {"LAKE-114"}, "steps/action holds 5 steps"),
        ({"steps__action": np.zeros(11, np.float32)}, {"LAKE-114"}, "5 steps of 2 and 1 more"),
        ({"steps__action": np.zeros(12, np.int64)}, {"LAKE-114"}, "declared float32"),
        ({"steps__action": np.full(12, np.nan, np.float32)}, {"LAKE-016"}, "action[0] is nan"),
        ({"steps__observation__state": None}, {"LAKE-114"}, "steps/observation/state is missing"),
        ({"steps__language_instruction": [b"lift"] * 5}, {"LAKE-114"}, "5 texts for 6 steps"),
        ({"steps__observation__front": None}, {"LAKE-114"}, "steps/observation/front is missing"),
        ({"steps__observation__front": [encoded(pixels(1, 1), "JPEG")] * 5}, {"LAKE-011"}, "5 pictures, 6 rows"),
        ({"steps__observation__front": [b"no picture"] * 6}, {"LAKE-031"}, "frame 0 is neither"),
        ({"steps__observation__front": np.zeros(6)}, {"LAKE-114"}, "holds numbers"),
        (
            {"steps__action": np.zeros(0, np.float32), "steps__observation__state": np.zeros(0, np.float32),
             "steps__language_instruction": [], "steps__observation__front": [], "steps__observation__wrist": []},
            {"LAKE-020", "LAKE-031"}, "no rows",
        ),
    ],
)  # fmt: skip
def test_a_record_that_is_not_as_declared(changes: dict[str, Any], codes: set[str], words: str, tmp_path: Path) -> None:
    found = examined(one_shard(tmp_path, three(**changes)))
    assert bad(found) == {1: codes}
    assert any(words in item.message for item in found[1].findings)
    assert {item.file for item in found[1].findings} == {"cart-train.tfrecord-00000-of-00001"}


def places(root: Path) -> list[int]:
    """Where the three records of the shard begin, and where it ends."""
    sizes = [len(framed(example(each))) for each in three()]
    assert shard_path(root).stat().st_size == sum(sizes)
    return [0, *np.cumsum(sizes).tolist()]


def test_a_flipped_byte_costs_its_record_alone(tmp_path: Path) -> None:
    """Bit rot in the second of three records, and a shard behind it."""
    root = write_rlds(tmp_path / "cart/1.0.0", {"train": [three()], "val": [[record(3, 4)]]})
    content = bytearray(shard_path(root).read_bytes())
    content[places(root)[1] + 100] ^= 1
    shard_path(root).write_bytes(content)
    found = examined(root)
    assert [each.episode.source_episode for each in found] == [0, 1, 2, 3] and bad(found) == {1: {"LAKE-111"}}
    assert f"byte {places(root)[1]:,}" in found[1].findings[0].message


@pytest.mark.parametrize("damage", ["cut", "length", "head"])
def test_a_broken_shard_costs_what_is_behind(damage: str, tmp_path: Path) -> None:
    root = write_rlds(tmp_path / "cart/1.0.0", {"train": [three()], "val": [[record(3, 4)]]})
    content, second = bytearray(shard_path(root).read_bytes()), places(root)[1]
    content[second] ^= 1 if damage == "length" else 0
    keep = {"cut": second + 50, "length": len(content), "head": second + 5}[damage]
    shard_path(root).write_bytes(content[:keep])
    found = examined(root)
    assert [each.episode.source_episode for each in found] == [0, 1, 2, 3]
    assert bad(found) == {1: {"LAKE-112"}, 2: {"LAKE-112"}}


@pytest.mark.parametrize(
    ("content", "code"), [(None, "LAKE-009"), (b"", "LAKE-112"), (b"version https://git-lfs.github.com", "LAKE-008")]
)
def test_a_shard_that_is_not_there(content: bytes | None, code: str, tmp_path: Path) -> None:
    root = write_rlds(tmp_path / "cart/1.0.0", {"train": [three()[:2], three()[2:]]})
    lost = shard_path(root, "train", 0, 2)
    lost.unlink()
    if content is not None:
        lost.write_bytes(content)
    found = examined(root)
    assert bad(found) == {0: {code}, 1: {code}} and [each.is_ok for each in found] == [False, False, True]
    assert {item.file for item in found[0].findings} == {lost.name}


def test_records_beyond_and_short_of_the_list(tmp_path: Path) -> None:
    """What is behind the listed ones is ingested under numbers behind all that are listed."""
    root = write_rlds(tmp_path / "cart/1.0.0", {"train": [three()], "val": [[record(3, 4)]]})
    info = json.loads((root / "dataset_info.json").read_text())
    info["splits"][0]["shardLengths"], info["splits"][1]["shardLengths"] = ["2"], ["3"]
    change_info(root, splits=info["splits"])
    found = examined(root)
    assert [each.episode.source_episode for each in found] == [0, 1, 5, 2, 3, 4]
    assert [item.code for item in found[2].findings] == ["LAKE-113"] and found[2].is_ok
    assert bad(found) == {3: {"LAKE-112"}, 4: {"LAKE-112"}}
    assert "holds 1 records, 3 are listed" in found[-1].findings[0].message


def test_what_is_broken_behind_the_listed_records_is_named(tmp_path: Path) -> None:
    root = one_shard(tmp_path, three())
    with shard_path(root).open("ab") as file:
        file.write(b"the rest")
    found = examined(root)
    assert [each.is_ok for each in found] == [True] * 3 + [False] and bad(found) == {3: {"LAKE-112"}}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"fileFormat": "array_record"}, "LAKE-002"),
        ({"splits": [{"name": "train"}]}, "LAKE-004"),
        ({"splits": [{"name": "train", "shardLengths": ["many"]}]}, "LAKE-004"),
        ({"splits": None}, "LAKE-004"),
    ],
)
def test_metadata_that_cannot_be_used(changes: dict[str, Any], code: str, tmp_path: Path) -> None:
    root = one_shard(tmp_path, three())
    change_info(root, **changes)
    with pytest.raises(UserError) as error:
        RldsFolder(root, AT_10_HZ)
    assert error.value.code == code


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"featuresDict": {"features": {"a": 3}}})])
def test_features_that_cannot_be_used(content: str, tmp_path: Path) -> None:
    root = one_shard(tmp_path, three())
    (root / "features.json").write_text(content)
    with pytest.raises(UserError) as error:
        RldsFolder(root, AT_10_HZ)
    assert error.value.code == "LAKE-004" and "features.json" in error.value.message


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_record_written_wrong_is_never_a_traceback(place: float, flip: int, tmp_path: Path) -> None:
    """The checksums agree, the content was wrong before: in = ok + quarantined, the others are as they were."""
    root = tmp_path / "cart/1.0.0"
    records = [record(0, 2), record(1, 2), record(2, 2)]
    if not root.exists():
        one_shard(tmp_path, records)
    wrong = bytearray(example(records[1]))
    wrong[int(place * len(wrong))] ^= flip
    shard_path(root).write_bytes(framed(example(records[0])) + framed(bytes(wrong)) + framed(example(records[2])))
    found = examined(root)
    assert [each.episode.source_episode for each in found] == [0, 1, 2]
    assert found[0].is_ok and found[2].is_ok
    assert found[1].is_ok or {item.severity for item in found[1].findings} >= {"error"}
