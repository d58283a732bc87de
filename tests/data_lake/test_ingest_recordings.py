"""Recorded robots enter the lake with what is wrong with them said, and nothing else changed."""

from pathlib import Path

import pytest

from errors import UserError
from tests.data_lake.seen import content, ingest

GR1_DEFECTS = {f"LAKE-{number:03d}" for number in range(41, 53)}


def test_gr1_with_its_real_defects(shared_data: Path, tmp_path: Path) -> None:
    done = ingest(shared_data / "lerobot-v2.0-gr1-picknplace", tmp_path / "gr1", dims=(44, 44))
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == (5, 0, 2096)
    assert {item.severity for item in done.findings} == {"warning"}
    assert {item.code for item in done.findings} == GR1_DEFECTS
    constant = [item.message for item in done.findings if item.code == "LAKE-052"]
    assert any("25 of 44 in action" in text for text in constant)
    assert any("18 of 44 in observation_state" in text for text in constant)
    instructions = [each["instruction"] for each in done.view["episodes"]]
    assert instructions[3] == "pick the salt from the counter and place it in the plate" and len(set(instructions)) == 5
    assert "valid" not in content(tmp_path / "gr1")["tasks"]["task"]


def test_gr1_in_both_versions_is_the_same(shared_data: Path, tmp_path: Path) -> None:
    first = ingest(shared_data / "lerobot-v2.0-gr1-picknplace", tmp_path / "gr1")
    second = ingest(shared_data / "lerobot-v3.0-gr1-repacked", tmp_path / "gr1")
    assert second.num_new == 0
    assert [each["content_hash"] for each in first.view["episodes"]] == [
        each["content_hash"] for each in second.view["episodes"]
    ]
    apart = ingest(shared_data / "lerobot-v3.0-gr1-repacked", tmp_path / "repacked")
    places = [each["views"]["ego_view"]["file_index"] for each in apart.view["episodes"]]
    assert places == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("lerobot-v2.1-g1-partial", (4, 96, 1043)),
        ("lerobot-v3.0-pusht-mini", (3, 0, 420)),
        ("lerobot-v3.0-metaworld-by-lerobot", (3, 0, 254)),
    ],
)
def test_other_recordings(name: str, counts: tuple[int, int, int], shared_data: Path, tmp_path: Path) -> None:
    done = ingest(shared_data / name, tmp_path / "other")
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == counts


def test_a_subset_has_its_own_rows(shared_data: Path, tmp_path: Path) -> None:
    """D05: episodes 28-31, whose numbers are no positions."""
    source = tmp_path / "g1"
    source.mkdir()
    for name in ("data", "videos"):
        (source / name).symlink_to(shared_data / "lerobot-v2.1-g1-partial" / name)
    (source / "meta").symlink_to(shared_data / "lerobot-v2.1-g1-partial/meta-trimmed")
    done = ingest(source, tmp_path / "lake")
    lengths = {each["source_episode"]: each["length"] for each in done.view["episodes"]}
    assert lengths == {28: 278, 29: 221, 30: 277, 31: 267}


@pytest.mark.parametrize("name", ["lerobot-v2.1-lfs-pointers-apple-storage", "lerobot-hybrid-malformed-franka-sim"])
def test_recordings_without_a_sound_episode(name: str, shared_data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        ingest(shared_data / name, tmp_path / "none")
    assert error.value.code == "LAKE-001"
