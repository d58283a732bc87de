"""Recorded robots enter the lake with what is wrong with them said, and nothing else changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.specs import ReadSpec
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
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


BRIDGE, WIPE = ReadSpec(fps="5"), ReadSpec(state=("joint_torques",), fps="20")
SOUND: dict[str, tuple[ReadSpec, tuple[int, int, int], set[str]]] = {
    "hdf5-robosuite-wipe-panda": (WIPE, (1, 0, 174), {"LAKE-024"}),
    "lerobot-v2.0-gr1-picknplace": (ReadSpec(), (5, 0, 2096), GR1_DEFECTS),
    "lerobot-v2.1-g1-partial": (ReadSpec(), (4, 96, 1043), {"LAKE-009", "LAKE-010", "LAKE-143"}),
    "lerobot-v3.0-gr1-repacked": (ReadSpec(), (5, 0, 2096), {"LAKE-052"}),
    "lerobot-v3.0-metaworld-by-lerobot": (ReadSpec(), (3, 0, 254), {"LAKE-144"}),
    "lerobot-v3.0-pusht-mini": (ReadSpec(), (3, 0, 420), {"LAKE-043", "LAKE-045", "LAKE-053"}),
    "rlds-bridge-debug": (BRIDGE, (25, 0, 250), {"LAKE-110", "LAKE-118"}),
}
"""What is declared of a recording, (ok, quarantined, frames), and all that is said of it."""

REFUSED = {
    "hdf5-robosuite-wipe-panda": ("LAKE-035", "which of its numbers are the robot's state"),
    "lerobot-hybrid-malformed-franka-sim": ("LAKE-001", "LAKE-009 the data file is missing (and in 1 more"),
    "lerobot-v2.1-lfs-pointers-apple-storage": ("LAKE-001", "LAKE-008 a Git LFS pointer"),
    "lerobot-v3.0-meta-only-image-dtype": ("LAKE-001", "LAKE-009 the data file is missing (and in 1 more"),
    "libero-init-states": ("LAKE-002", "not a source"),
    "rlds-bridge-debug": ("LAKE-035", "how many steps a second"),
    "rosbag2": ("LAKE-035", "which of its topics are the state"),
    "video-labeled-frames-av1": ("LAKE-002", "not a source"),
}
"""Undeclared, or no demonstrations: the code and words of it."""


def test_every_recording_is_in_a_table(shared_data: Path) -> None:
    there = {path.name for path in shared_data.iterdir() if path.is_dir()} - {"LICENSES"}
    assert there == SOUND.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", SOUND)
def test_recordings_come_in(name: str, shared_data: Path, tmp_path: Path) -> None:
    read, counts, codes = SOUND[name]
    done = ingest(shared_data / name, tmp_path / "lake", replace(SPEC, read=read))
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == counts
    assert {item.code for item in done.findings} == codes


@pytest.mark.parametrize("name", REFUSED)
def test_recordings_that_are_refused(name: str, shared_data: Path, tmp_path: Path) -> None:
    code, words = REFUSED[name]
    with pytest.raises(UserError) as error:
        ingest(shared_data / name, tmp_path / "none")
    assert error.value.code == code and words in error.value.message
    assert not (tmp_path / "none/manifests").exists()


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
