"""A version's tables by its manifest: what is gone, torn or of another release is named."""

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from data_lake.tables import Manifest, dataset_root, open_table, read_manifest
from errors import UserError
from tests.data_lake.test_writer import append


def test_a_version_that_is_gone_is_named(tmp_path: Path) -> None:
    append(tmp_path, 1)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    gone = Manifest(version=1, vector={"frames": 99}, num_episodes=1, num_frames=1, num_videos=0, created=0.0, files={})
    with pytest.raises(UserError) as error:
        open_table(tmp_path, gone, "frames")
    assert error.value.code == "LAKE-074" and "version 99" in error.value.where


def test_a_torn_manifest_is_named(tmp_path: Path) -> None:
    append(tmp_path, 1)
    (tmp_path / "manifests/000002.json").write_text("{")
    with pytest.raises(UserError) as error:
        read_manifest(tmp_path)
    assert error.value.code == "LAKE-074"


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc", "a/b", "a\0b", "-rf", ".hidden", "%2e%2e/x", "x" * 101])
def test_a_name_leads_nowhere_else(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        dataset_root(tmp_path, name)
    assert error.value.code == "LAKE-034"
    assert dataset_root(tmp_path, "gr1_v2.0-a") == tmp_path / "datasets/gr1_v2.0-a"


def test_a_table_of_another_release_is_named(tmp_path: Path) -> None:
    """Its columns are not those that are read: one clear error, not a failure somewhere inside."""
    append(tmp_path, 5)
    older = pa.table({"video_key": ["front"], "sha256": [""]})
    lance.write_dataset(older, str(tmp_path / "videos.lance"), mode="overwrite")
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    newest = lance.dataset(str(tmp_path / "videos.lance")).version
    changed = replace(manifest, vector={**manifest.vector, "videos": newest})
    with pytest.raises(UserError, match="no column chunk_index") as refused:
        open_table(tmp_path, changed, "videos")
    assert refused.value.code == "LAKE-074" and "videos.lance" in refused.value.where
