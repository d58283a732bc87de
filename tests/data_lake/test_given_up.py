"""The word that a version was given up: put once, kept, and told to those who ask for it."""

from pathlib import Path

import pytest

from data_lake.given_up import give_up, given_up, given_up_at
from data_lake.tables import manifest_at, manifest_path, open_table, read_manifest, versions
from errors import UserError
from tests.data_lake.test_writer import append


def test_it_is_told_and_nothing_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "cart"
    first, second = append(root, 5), append(root, 3)
    assert first is not None and second is not None
    give_up(root, 1, who="ada")
    said = given_up_at(root, 1)
    give_up(root, 1, who="bob")
    assert given_up_at(root, 1) == said, "the first word counts"
    assert (given_up(root), versions(root), read_manifest(root)) == ({1}, [2], second)
    with pytest.raises(UserError, match="version 1 of cart was given up") as expired:
        read_manifest(root, 1)
    assert expired.value.code == "LAKE-182"
    assert manifest_at(manifest_path(root, 1)) == first
    assert open_table(root, first, "frames").count_rows() == 5, "for those who had opened it"
