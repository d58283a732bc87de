"""What an ingest writes beside the tables: a view, a quarantine, findings; and the error when nothing is sound."""

import json
from pathlib import Path

from data_lake.findings import finding
from data_lake.ingested import nothing_sound, write_view
from data_lake.ledger import Verdict
from data_lake.review import Seen
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.tables import Manifest
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2

MANIFEST = Manifest(version=3, vector={}, num_episodes=1, num_frames=5, num_videos=0, created=0.0, files={})
MEANING = dict.fromkeys(
    ("colour_order", "image_orientation", "action_mode", "fps", "render_every", "instruction_source", "grippers")
)
BAD = Seen(
    verdict=Verdict(part=0, source_episode=4, file="a", content_hash="", recording="", digests={}, findings=()),
    findings=(finding("LAKE-009", episode=4), finding("LAKE-009", episode=5)),
    examined=None,
)
ENTRY = {"source_episode": 1, "content_hash": "x", "length": 5}


def test_the_files_and_the_fingerprint(tmp_path: Path) -> None:
    done = write_view(tmp_path, SPEC, MANIFEST, MEANING, [ENTRY], [BAD], BAD.findings, num_new=1)
    assert (done.num_episodes, done.num_quarantined, done.num_frames, done.num_new) == (1, 1, 5, 1)
    assert json.loads((tmp_path / "episodes.json").read_text()) == done.view
    (left_out,) = json.loads((tmp_path / "quarantine.json").read_text())
    assert (left_out["episode"], left_out["file"], len(left_out["findings"])) == (4, "a", 2)
    later = write_view(tmp_path, SPEC, MANIFEST, MEANING, [{**ENTRY, "content_hash": "y"}], [], [], num_new=0)
    assert later.fingerprint != done.fingerprint


def test_nothing_sound_names_the_first_error(tmp_path: Path) -> None:
    source = LeRobotFolder(write_v2(tmp_path / "source", (5,)))
    error = nothing_sound(source, [BAD], BAD.findings)
    assert error.code == "LAKE-001" and "LAKE-009" in error.message and "in 1 = ok 0 + quarantined 1" in error.done
