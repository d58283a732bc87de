"""What stands in a file's place is told apart: nothing, a pointer, a server's page, or the file itself."""

from pathlib import Path

import pytest

from data_lake.sources.files import Unreadable, ensure_present, read_meta_json
from errors import UserError


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "LAKE-141"),
        (b"\r\n  <HTML lang='en'>429</HTML>", "LAKE-141"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "LAKE-141"),
        (b"<Error><Code>NoSuchKey</Code></Error>", "LAKE-141"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "LAKE-008"),
        (None, "LAKE-010"),
    ],
)
def test_what_is_there_instead(content: bytes | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unreadable) as error:
        ensure_present(path, "LAKE-010")
    assert error.value.code == code


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"\x00\x00\x00\x20ftypisom", b"\x3c\x00\x00\x00moov", b'{"a": "<html"}']
)
def test_other_content_is_left_to_its_reader(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    ensure_present(tmp_path / "a", "LAKE-010")


def test_metadata_that_are_a_page(tmp_path: Path) -> None:
    (tmp_path / "info.json").write_text("<html>Sign in</html>")
    with pytest.raises(UserError, match=r"info.json is a web page") as error:
        read_meta_json(tmp_path / "info.json")
    assert error.value.code == "LAKE-004"
