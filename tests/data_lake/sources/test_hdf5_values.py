"""Numbers, words and pictures of one demonstration, and what is said where they are not as expected."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from data_lake.sources.files import Unreadable
from data_lake.sources.hdf5_values import read_numbers, read_pictures, read_words
from tests.data_lake.hdf5_recordings import motion, shades, write_demo


def written(folder: Path, arrays: dict[str, Any], **attributes: Any) -> h5py.File:
    write_demo(folder / "demo.hdf5", "demo_0", arrays, **attributes)
    return h5py.File(folder / "demo.hdf5", "r")


def test_numbers_come_as_tables_of_floats(tmp_path: Path) -> None:
    arrays = {"a": motion(4, 3), "grip/b": np.array([0, 1, 1, 0]), "c": np.array([True, False, True, True])}
    with written(tmp_path, arrays) as file:
        found = read_numbers(file["data/demo_0"], ("grip/b", "a", "c"))
    assert [rows_TD.shape for rows_TD in found.values()] == [(4, 1), (4, 3), (4, 1)]
    assert all(rows_TD.dtype == np.float32 for rows_TD in found.values())
    assert np.array_equal(found["a"], arrays["a"]) and found["grip/b"][:, 0].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("paths", "code", "words"),
    [
        (("a", "obs/wrist"), "LAKE-108", "obs/wrist"),
        (("a/b",), "LAKE-108", "a/b"),
        (("group",), "LAKE-108", "group"),
        (("/data/demo_0/a",), "LAKE-108", "/data/demo_0/a"),
        (("a", "short"), "LAKE-102", "a has 4, short has 3"),
        (("image",), "LAKE-109", r"uint8 \(4, 16, 16, 3\)"),
        (("text",), "LAKE-109", "object"),
        (("scalar",), "LAKE-109", "()"),
        (("narrow",), "LAKE-109", r"\(4, 0\)"),
    ],
)
def test_what_is_no_table_of_numbers(paths: tuple[str, ...], code: str, words: str, tmp_path: Path) -> None:
    arrays = {
        "a": motion(4, 3), "short": motion(3, 3), "image": shades(4), "text": ["x"] * 4, "scalar": 1.0,
        "narrow": np.zeros((4, 0)), "group/in": motion(4, 1),
    }  # fmt: skip
    with written(tmp_path, arrays) as file, pytest.raises(Unreadable, match=words) as refused:
        read_numbers(file["data/demo_0"], paths)
    assert refused.value.code == code


def test_what_float32_cannot_hold_is_infinite(tmp_path: Path) -> None:
    """So that the check for finite values sees what the lake would hold."""
    with written(tmp_path, {"a": np.array([[1e300, 1.0]])}) as file:
        assert read_numbers(file["data/demo_0"], ("a",))["a"].tolist() == [[np.inf, 1.0]]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("=lift it", "lift it"),
        ("language", "wipe the table"),
        ("obs/lang", "per row"),
        ("obs/said", "by the group"),
        ("task", "of the file"),
        ("bytes", "ascii"),
        ("absent/too", ""),
    ],
)
def test_words_from_a_literal_a_data_set_or_an_attribute(path: str, expected: str, tmp_path: Path) -> None:
    with written(tmp_path, {"obs/lang": ["per row"] * 3}, language=" wipe the table", bytes=np.bytes_(b"ascii")):
        pass
    with h5py.File(tmp_path / "demo.hdf5", "a") as file:
        file["data"].attrs["task"] = "of the file"
        file["data/demo_0/obs"].attrs["said"] = "by the group"
    with h5py.File(tmp_path / "demo.hdf5") as file:
        assert read_words((file["data/demo_0"], file["data"]), path) == expected


@pytest.mark.parametrize("path", ["several", "number", "obs"])
def test_what_is_no_single_text(path: str, tmp_path: Path) -> None:
    arrays = {"several": ["a", "b"], "obs": motion(2, 2)}
    with written(tmp_path, arrays, number=3) as file, pytest.raises(Unreadable) as refused:
        read_words((file["data/demo_0"],), path)
    assert refused.value.code == "LAKE-107"


@pytest.mark.parametrize("chunks", [None, (1, 16, 16, 3), (4, 8, 16, 3), (7, 16, 16, 3)])
def test_pictures_come_one_by_one_and_anew(chunks: tuple[int, ...] | None, tmp_path: Path) -> None:
    images, path = shades(7), tmp_path / "demo.hdf5"
    with h5py.File(path, "w") as file:
        packed = {"compression": "gzip"} if chunks else {}
        file.create_dataset("data/demo_0/obs/front", data=images, chunks=chunks, **packed)
    for _ in range(2):
        found = list(read_pictures(path, "data/demo_0/obs/front"))
        assert len(found) == 7 and np.array_equal(np.stack(found), images)


@pytest.mark.parametrize("name", ["nothing", "group", "scalar"])
def test_pictures_that_are_not_there(name: str, tmp_path: Path) -> None:
    with written(tmp_path, {"group/in": motion(2, 2), "scalar": 1.0}):
        pass
    with pytest.raises(Unreadable) as refused:
        next(read_pictures(tmp_path / "demo.hdf5", f"data/demo_0/{name}"))
    assert refused.value.code == "LAKE-031"
