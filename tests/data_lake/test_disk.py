"""What people are told when the disk refuses."""

import errno
from pathlib import Path

import pytest

from data_lake.disk import SAID, disk_faults
from errors import UserError


@pytest.mark.parametrize("number", sorted(SAID))
@pytest.mark.parametrize("by_lance", [False, True])
def test_a_disk_that_refuses_is_named_with_what_is_free(number: int, by_lance: bool, tmp_path: Path) -> None:
    file = str(tmp_path / "file")
    error = OSError(f"LanceError(IO): no (os error {number}), lib.rs:1") if by_lance else OSError(number, "no", file)
    with pytest.raises(UserError) as told, disk_faults(tmp_path, needed_bytes=12_345):
        raise error
    assert told.value.code == "LAKE-082" and told.value.message == SAID[number][0]
    assert told.value.where.startswith(str(tmp_path) if by_lance else file)
    assert "bytes free" in told.value.where and "12,345 bytes are needed" in told.value.where


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    for error in (OSError(errno.ENOENT, "no"), OSError("commit conflict"), ValueError("os error 28")):
        with pytest.raises(type(error)) as told, disk_faults(tmp_path):
            raise error
        assert told.value is error
