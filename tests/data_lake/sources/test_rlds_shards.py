"""Which files dataset_info.json implies, what their episodes are called, and what is missing or too much."""

import json
from pathlib import Path
from typing import Any

import pytest

from data_lake.sources.rlds_shards import Shards, is_version, list_shards, version_folder, versions_below
from errors import UserError
from tests.data_lake.rlds_recordings import change_info, record, shard_path, write_rlds

ONE = record(0, 2)


def listed(root: Path) -> Shards:
    return list_shards(root, json.loads((root / "dataset_info.json").read_text()))


def codes(shards: Shards) -> list[str]:
    return [item.code for item in shards.findings]


def test_episodes_are_numbered_through_all_shards(tmp_path: Path) -> None:
    root = write_rlds(tmp_path / "1.0.0", {"train": [[ONE, ONE], [ONE]], "val": [[ONE]]})
    found = listed(root)
    assert [(shard.path.name, shard.split, shard.first, shard.num_episodes) for shard in found.shards] == [
        ("cart-train.tfrecord-00000-of-00002", "train", 0, 2),
        ("cart-train.tfrecord-00001-of-00002", "train", 2, 1),
        ("cart-val.tfrecord-00000-of-00001", "val", 3, 1),
    ]
    assert found.num_listed == 4 and found.findings == ()


def test_a_split_without_files_is_left_out_and_numbers_stay(tmp_path: Path) -> None:
    root = write_rlds(tmp_path / "1.0.0", {"train": [[ONE, ONE]], "val": [[ONE]]})
    shard_path(root, "train").unlink()
    found = listed(root)
    assert [(shard.split, shard.first) for shard in found.shards] == [("val", 2)]
    assert codes(found) == ["LAKE-110"] and "train, 2 episodes" in found.findings[0].message


def test_a_missing_shard_stays_listed(tmp_path: Path) -> None:
    """Also where nothing at all is there: its episodes are then missing one by one."""
    root = write_rlds(tmp_path / "1.0.0", {"train": [[ONE], [ONE]], "val": [[]]})
    shard_path(root, "train", 0, 2).unlink()
    assert [shard.first for shard in listed(root).shards] == [0, 1]
    for path in root.glob("*.tfrecord*"):
        path.unlink()
    assert [shard.first for shard in listed(root).shards] == [0, 1] and codes(listed(root)) == []


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (None, "cart-train.tfrecord-00000-of-00001"),
        ("{SPLIT}/{DATASET}.{FILEFORMAT}-{SHARD_INDEX}of{NUM_SHARDS}", "train/cart.tfrecord-00000of00001"),
    ],
)
def test_templates_of_file_names(template: str | None, name: str, tmp_path: Path) -> None:
    info = {"name": "cart", "splits": [{"name": "train", "shardLengths": ["1"], "filepathTemplate": template}]}
    (shard,) = list_shards(tmp_path, info).shards
    assert shard.path == tmp_path / name


@pytest.mark.parametrize(
    "split",
    [
        {"filepathTemplate": "{DATASET}-{SECRET}"},
        {"filepathTemplate": "/etc/{SPLIT}"},
        {"filepathTemplate": "../{SPLIT}"},
        {"name": "../train", "filepathTemplate": "a/{SPLIT}"},
        {"shardLengths": ["-1"]},
    ],
)
def test_shards_that_cannot_be(split: dict[str, Any], tmp_path: Path) -> None:
    info = {"name": "cart", "splits": [{"name": "train", "shardLengths": ["1"], **split}]}
    with pytest.raises(UserError) as error:
        list_shards(tmp_path, info)
    assert error.value.code == "LAKE-004" and "dataset_info.json" in error.value.message


def test_shards_that_nobody_lists_are_named(tmp_path: Path) -> None:
    root = write_rlds(tmp_path / "1.0.0", {"train": [[ONE]]})
    (root / "cart-train.tfrecord-00000-of-00004").touch()
    found = listed(root)
    assert [(item.code, item.file) for item in found.findings] == [("LAKE-116", "cart-train.tfrecord-00000-of-00004")]


def test_versions_that_disagree_are_named(tmp_path: Path) -> None:
    """D08: what the metadata say against where they lie."""
    root = write_rlds(tmp_path / "1.0.0", {"train": [[ONE]]})
    change_info(root, version="2.0.0")
    (odd,) = listed(root).findings
    assert odd.code == "LAKE-119" and "it says 2.0.0, its folder 1.0.0" in odd.message
    assert codes(listed(root.rename(tmp_path / "renamed"))) == []


def test_the_folder_of_a_data_set(tmp_path: Path) -> None:
    first = write_rlds(tmp_path / "cart/1.0.0", {"train": [[ONE]]})
    (tmp_path / "cart/notes").mkdir()
    assert is_version(first) and not is_version(first.parent)
    assert versions_below(first.parent) == [first] and versions_below(first / "features.json") == []
    assert version_folder(first) == version_folder(first.parent) == first
    assert version_folder(tmp_path) == tmp_path, "its files will be missed by name"
    write_rlds(tmp_path / "cart/1.1.0", {"train": [[ONE]]})
    assert version_folder(first) == first
    with pytest.raises(UserError) as error:
        version_folder(first.parent)
    assert error.value.code == "LAKE-002" and "1.0.0, 1.1.0" in error.value.message
