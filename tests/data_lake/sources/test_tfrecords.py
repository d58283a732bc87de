"""Records come back as they were written; whatever is damaged is named, and only that is lost."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.sources.files import Unreadable
from data_lake.sources.tfrecords import content_at, example, masked_crc32c, records
from tests.data_lake import rlds_recordings as written

CONTENTS = [b"first", b"", b"the third one"]
SHARD = "rlds-bridge-debug/1.0.0/bridge_dataset-train.tfrecord-00000-of-00001"


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_the_checksum_of_the_standard() -> None:
    """RFC 3720, B.4: 32 bytes of zeros; turned by 15 bits, plus the constant of TFRecord."""
    assert masked_crc32c(bytes(32)) == (((0x8A9136AA >> 15) | (0x8A9136AA << 17)) + 0xA282EAD8) % 2**32


@given(st.binary(max_size=40))
def test_the_checksum_is_that_of_the_polynomial(content: bytes) -> None:
    assert masked_crc32c(content).to_bytes(4, "little") == written.masked(content)


def test_records_come_back_one_by_one_and_by_their_places(tmp_path: Path) -> None:
    path = write(tmp_path / "shard", b"".join(written.framed(content) for content in CONTENTS))
    found = list(records(path))
    assert [record.content for record in found] == CONTENTS
    assert [record.offset for record in found] == [0, 21, 37]
    assert [content_at(path, record.offset) for record in reversed(found)] == CONTENTS[::-1]
    assert list(records(write(tmp_path / "empty", b""))) == []


@settings(deadline=None, max_examples=200)
@given(place=st.integers(0, 65), flip=st.integers(1, 255))
def test_a_flipped_byte_never_passes(place: int, flip: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In the content or its checksum it costs that record alone, in the length or its checksum all behind it."""
    content = bytearray(b"".join(written.framed(content) for content in CONTENTS))
    content[place] ^= flip
    path = write(tmp_path_factory.mktemp("flipped") / "shard", bytes(content))
    starts = (0, 21, 37)
    hit = sum(place >= start for start in starts) - 1
    found: list[bytes | None] = []
    if place - starts[hit] < 12:
        with pytest.raises(Unreadable) as broken:
            found += [record.content for record in records(path)]
        assert broken.value.code == "LAKE-112" and f"byte {starts[hit]}" in broken.value.detail
        return
    found = [record.content for record in records(path)]
    assert found == [None if number == hit else content for number, content in enumerate(CONTENTS)]
    with pytest.raises(Unreadable) as broken:
        content_at(path, starts[hit])
    assert broken.value.code == "LAKE-111"


@pytest.mark.parametrize("length", range(1, 66))
def test_a_cut_file_gives_what_is_whole(length: int, tmp_path: Path) -> None:
    whole = b"".join(written.framed(content) for content in CONTENTS)
    path, found = write(tmp_path / "shard", whole[:length]), []
    if length in (21, 37):
        found = [record.content for record in records(path)]
    else:
        with pytest.raises(Unreadable) as broken:
            for record in records(path):
                found.append(record.content)
        assert broken.value.code == "LAKE-112"
    assert found == CONTENTS[: (length >= 21) + (length >= 37)]


def test_a_length_that_no_file_has_reserves_no_memory(tmp_path: Path) -> None:
    length = (2**62).to_bytes(8, "little")
    with pytest.raises(Unreadable) as broken:
        list(records(write(tmp_path / "shard", length + written.masked(length) + b"few")))
    assert broken.value.code == "LAKE-112"


@pytest.mark.parametrize(
    ("content", "code"), [(None, "LAKE-009"), (b"version https://git-lfs.github.com/spec/v1\n", "LAKE-008")]
)
def test_a_file_that_is_not_there(content: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "shard" if content is None else write(tmp_path / "shard", content)
    with pytest.raises(Unreadable) as refused:
        list(records(path))
    assert refused.value.code == code


def test_a_record_that_is_gone_when_it_is_read_again(tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as gone:
        content_at(tmp_path / "shard", 0)
    assert gone.value.code == "LAKE-112"
    with pytest.raises(Unreadable) as gone:
        content_at(write(tmp_path / "shard", written.framed(b"one")), 19)
    assert gone.value.code == "LAKE-111"


def test_features_keep_their_kind_and_every_bit() -> None:
    floats = np.array([0.1, -np.inf, np.nan, 1e-45], np.float32)
    integers = np.array([0, 1, -1, 2**63 - 1, -(2**63)])
    found = example(written.example({"a/f": floats, "i": integers, "b": [b"", b"\xff\x00"], "ä": []}))
    assert isinstance(found["a/f"], np.ndarray) and isinstance(found["i"], np.ndarray)
    assert found["a/f"].dtype == np.float32 and found["a/f"].tobytes() == floats.tobytes()
    assert found["i"].dtype == np.int64 and found["i"].tolist() == integers.tolist()
    assert found["b"] == [b"", b"\xff\x00"] and found["ä"] == []


@given(st.binary(max_size=60))
def test_any_bytes_are_an_example_or_named(content: bytes) -> None:
    try:
        found, code = example(content), None
    except Unreadable as odd:
        found, code = {}, odd.code
    assert code in (None, "LAKE-114") and all(isinstance(values, np.ndarray | list) for values in found.values())


def test_records_of_tensorflow_itself(shared_data: Path) -> None:
    found = list(records(shared_data / SHARD))
    assert len(found) == 25 and None not in {record.content for record in found}
    first = example(found[0].content or b"")
    assert len(first) == 20 and len(first["steps/action"]) == 70
    assert first["steps/language_instruction"] == [b"put cup from counter or drying rack into sink"] * 10
