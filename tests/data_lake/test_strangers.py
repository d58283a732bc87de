"""LeRobot's and LanceDB's own readers on what the lake gives out; runs where there is a peers' environment."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peer import MAKE_IT, peers_python
from data_lake.examine import Tally, examine
from data_lake.exports import publish_folder
from data_lake.published import publish_lance
from data_lake.sources import open_source
from data_lake.specs import IngestSpec
from data_lake.version import DatasetVersion, open_version
from tests.architecture.tree import ROOT
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest

SCRIPT, RECORD = (ROOT / "benchmarks/peers" / name for name in ("strangers.py", "record.py"))
LEFT = IngestSpec(dataset="cart", embodiment="cart", copy="reference")
PASSES_S = 60
OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def peers() -> Path:
    python = peers_python()
    if python is None:
        pytest.skip(MAKE_IT)
    return python


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> Path:
    """Written by LeRobot itself: two AV1 cameras, three episodes in one file."""
    return shared_data / "lerobot-v3.0-metaworld-by-lerobot"


def version_of(source: Path, lake: Path, spec: IngestSpec = SPEC) -> DatasetVersion:
    ingest(source, lake / "datasets/cart", spec)
    return open_version(lake, "cart")


def answer(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.slow
def test_every_item_is_that_of_the_source(peers: Path, recorded: Path, tmp_path: Path) -> None:
    version = version_of(recorded, tmp_path / "lake")
    places = {"lance": publish_lance(version)[0], "v30": tmp_path / "v30", "v21": tmp_path / "v21"}
    for form in ("v3.0", "v2.1"):
        publish_folder(version, places[form.replace(".", "")], form)
    given = [word for name, path in places.items() for word in (f"--{name}", str(path))]
    command = [str(peers), str(SCRIPT), "--source", str(recorded), *given]
    found = answer(subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env=OFFLINE))
    placed = {path.relative_to(places["v30"]): path.read_bytes() for path in places["v30"].rglob("*.mp4")}
    assert placed == {path.relative_to(recorded): path.read_bytes() for path in recorded.rglob("*.mp4")}
    for name in ("lance", "v30", "v21", "lance_chunks", "v30_chunks"):
        seen = found[name]
        assert (seen["items"], seen["items_there"]) == (254, 254)
        assert (seen["unlike"], seen["absent"], seen["more"]) == ({}, [], [])
        assert len(seen["equal_keys"]) == (11 if name.endswith("chunks") else 10)
    assert found["doctor"] == {"failed": 0, "said": ["all 5 checks passed"]}


@pytest.mark.slow
def test_pictures_that_lerobot_recorded_are_the_same_as_video(peers: Path, tmp_path: Path) -> None:
    """A camera of dtype `image` and one of dtype `video`, which the lake leaves where it is: whole all the same."""
    source = tmp_path / "source"
    subprocess.run([str(peers), str(RECORD), str(source)], check=True, capture_output=True, timeout=300, env=OFFLINE)
    version = version_of(source, tmp_path / "lake", LEFT)
    places = {"lance": publish_lance(version)[0], "v30": tmp_path / "v30", "v21": tmp_path / "v21"}
    for form in ("v3.0", "v2.1"):
        findings = publish_folder(version, places[form.replace(".", "")], form)
        assert [(item.code, item.camera) for item in findings] == [("LAKE-196", "observation.images.stills")]
    given = [word for name, path in places.items() for word in (f"--{name}", str(path))]
    command = [str(peers), str(SCRIPT), "--source", str(source), *given]
    found = answer(subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=OFFLINE))
    for name in places:
        seen = found[name]
        assert (seen["items"], seen["items_there"], len(seen["equal_keys"])) == (12, 12, 10)
        assert (seen["unlike"], seen["absent"], seen["more"]) == ({}, [], [])


@pytest.mark.slow
def test_lancedb_reads_the_same_while_others_append(peers: Path, tmp_path: Path) -> None:
    version = version_of(write_v2(tmp_path / "source"), tmp_path / "lake")
    folder, until = publish_lance(version)[0], tmp_path / "until"
    publish_folder(version, tmp_path / "v30", "v3.0")
    given = ("--source", tmp_path / "v30", "--lance", folder, "--until", until)
    command = [str(word) for word in (peers, SCRIPT, *given)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=OFFLINE
    ) as reading:
        begin = time.monotonic()
        number = 0
        while reading.poll() is None and (number < 4 or time.monotonic() - begin < PASSES_S / 2):
            number += 1
            ingest(write_v2(tmp_path / f"later-{number}", (20 + number, 6)), version.root)
            time.sleep(0.5)
        until.touch()
        told, _ = reading.communicate(timeout=PASSES_S)
    found = json.loads(told.splitlines()[-1])
    assert open_version(tmp_path / "lake", "cart").manifest.version == 1 + number
    assert found["lance"]["unlike"] == {} and found["lance"]["items"] == found["lance"]["items_there"] == 30
    assert len(found["passes"]) > 3 and len(set(found["passes"])) == 1


@pytest.mark.slow
def test_what_their_converter_writes_is_a_source(peers: Path, recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "converted"
    command = [str(peers.with_name("lerobot-lance-convert")), "--root", str(recorded), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=300, env=OFFLINE)
    hashes = [
        [each.content_hash for each in examine(open_source(path), workers=2, tally=Tally())] for path in (out, recorded)
    ]
    assert hashes[0] == hashes[1] and all(hashes[0])
