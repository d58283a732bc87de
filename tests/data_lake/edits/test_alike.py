"""What two versions mean is compared, not how it is written; of features every field is kept."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from data_lake.edits.alike import differences, ensure_alike, features_together
from data_lake.meaning import MEANT, MEANT_WHERE_SAID
from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tests.data_lake.recordings import CAMERA, write_v2
from tests.data_lake.seen import ingest


@pytest.fixture
def version(tmp_path: Path) -> DatasetVersion:
    ingest(write_v2(tmp_path / "v2", (8,)), tmp_path / "lake/datasets/cart")
    return open_version(tmp_path / "lake", "cart")


def with_feature(version: DatasetVersion, key: str, **values: Any) -> DatasetVersion:
    features = {**version.info["features"], key: {**version.info["features"][key], **values}}
    return replace(version, info={**version.info, "features": features})


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (CAMERA, {"video_info": {"video.codec": "av1"}, "info": None}),
        ("action", {"names": None}),
        ("action", {"names": {"motors": ["dx", "dy"]}}),
        ("action", {"fps": 10}),
    ],
)
def test_cosmetics(version: DatasetVersion, key: str, values: dict[str, Any]) -> None:
    other = with_feature(version, key, **values)
    assert list(differences(version, other)) == list(differences(other, version)) == []


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("action", {"names": ["dy", "dx"]}, 'action names (["dx", "dy"] in cart@1, ["dy", "dx"] in cart@1)'),
        ("action", {"shape": [3]}, "action shape ([2] in cart@1, [3] in cart@1)"),
        ("action", {"dtype": "float64"}, "action dtype (float32 in cart@1, float64 in cart@1)"),
        (CAMERA, {"shape": [64, 64, 3]}, f"{CAMERA} shape ([32, 32, 3] in cart@1, [64, 64, 3] in cart@1)"),
    ],
)
def test_real_differences(version: DatasetVersion, key: str, values: dict[str, Any], words: str) -> None:
    other = with_feature(version, key, **values)
    assert list(differences(version, other)) == [words]
    with pytest.raises(UserError) as refused:
        ensure_alike([version, version, other])
    assert refused.value.code == "LAKE-180" and words in refused.value.message


def test_another_robot_and_another_meaning(version: DatasetVersion) -> None:
    changed = {"meaning": version.episodes[0]["meaning"].replace('"rgb"', '"bgr"')}
    other = replace(
        version,
        info={**version.info, "vlaloop": {"embodiment": "wagon"}},
        episode_rows=pa.Table.from_pylist([{**row, **changed} for row in version.episodes]),
    )
    assert list(differences(version, other)) == [
        "colour_order (rgb in cart@1, bgr in cart@1)",
        "embodiment (cart in cart@1, wagon in cart@1)",
    ]


def test_a_column_of_one_alone(version: DatasetVersion) -> None:
    features = {name: value for name, value in version.info["features"].items() if name != "action"}
    other = replace(version, info={**version.info, "features": features})
    assert list(differences(version, other)) == ["action (present in cart@1, absent in cart@1)"]


def test_every_field_is_kept(version: DatasetVersion) -> None:
    """Of the first that says it: one without names takes them from the other, and keeps what it says itself."""
    bare = with_feature(version, "action", names=None, fps=10)
    assert features_together([bare, version])["action"] == {**version.info["features"]["action"], "fps": 10}


@pytest.mark.parametrize("name", [*MEANT, *MEANT_WHERE_SAID])
def test_everything_that_is_identity_keeps_data_sets_apart(version: DatasetVersion, name: str) -> None:
    meaning = json.loads(version.episodes[0]["meaning"])
    rows = [{**row, "meaning": json.dumps({**meaning, name: ["other"]})} for row in version.episodes]
    (told,) = differences(version, replace(version, episode_rows=pa.Table.from_pylist(rows)))
    assert told.startswith(f"{name} (") and '["other"]' in told
