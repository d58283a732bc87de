"""Argument, then environment, then default; home beside the lake."""

from pathlib import Path

import pytest
from upath import UPath

from errors import UserError
from flows.places import places


def test_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = places()
    assert (found.lake, found.home) == (tmp_path / "lake", tmp_path / ".vlaloop")
    assert places("other/lake").home == tmp_path / "other" / ".vlaloop"


def test_environment_then_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLALOOP_LAKE", str(tmp_path / "a"))
    monkeypatch.setenv("VLALOOP_HOME", str(tmp_path / "b"))
    assert (places().lake, places().home) == (tmp_path / "a", tmp_path / "b")
    given = places(tmp_path / "c", tmp_path / "d")
    assert (given.lake, given.home) == (tmp_path / "c", tmp_path / "d")
    assert given.environment() == {"VLALOOP_LAKE": str(tmp_path / "c"), "VLALOOP_HOME": str(tmp_path / "d")}


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="(?s)CLI-007.*file"):
        places(tmp_path / "file")
    with pytest.raises(UserError, match="(?s)CLI-007.*file"):
        places(tmp_path / "lake", tmp_path / "file")


def test_a_lake_on_an_object_store(bucket: UPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State is in the present folder then; the bucket is looked at before anything begins."""
    monkeypatch.chdir(tmp_path)
    found = places(f"{bucket}/")
    assert (found.lake, found.home) == (bucket, tmp_path / ".vlaloop")
    assert places(**{name[8:].lower(): value for name, value in found.environment().items()}) == found
    with pytest.raises(UserError, match="(?s)LAKE-172.*absent-bucket"):
        places("s3://absent-bucket/lake")
