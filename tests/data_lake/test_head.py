"""All of a data set as a source: what came in, a recording counted once, the same digest for the same content."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.head import look_at_head, take_head
from data_lake.specs import GripperSpec, ReadSpec
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest

FIRST, SECOND = (8, 12), (8, 12, 10)  # the second recording holds the first one's episodes again, and one more


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A data set `cart` into which two folders came."""
    for number, lengths in enumerate((FIRST, SECOND)):
        ingest(write_v2(tmp_path / f"source-{number}", lengths), tmp_path / "lake" / "datasets" / "cart")
    return tmp_path / "lake"


def test_the_head_is_everything_once(lake: Path, tmp_path: Path) -> None:
    found = look_at_head(lake, "lake:cart")
    assert found.path == "lake:cart@2"
    out = tmp_path / "out"
    out.mkdir()
    taken = take_head(lake, found, SPEC, out)
    assert (taken.num_episodes, taken.num_frames, taken.num_new) == (3, 30, 0)
    assert json.loads((out / "episodes.json").read_text())["version"] == 2


def test_a_snapshot_does_not_see_what_comes_later(lake: Path, tmp_path: Path) -> None:
    before = look_at_head(lake, "lake:cart")
    ingest(write_v2(tmp_path / "later", (8, 12, 10, 6)), lake / "datasets" / "cart")
    after = look_at_head(lake, "lake:cart")
    assert after.fingerprint != before.fingerprint
    (tmp_path / "out").mkdir()
    assert take_head(lake, before, SPEC, tmp_path / "out").num_episodes == 3
    assert take_head(lake, after, SPEC, tmp_path / "out").num_episodes == 4


def test_the_digest_follows_content_not_place(lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake / "datasets" / "cart", tmp_path / "elsewhere" / "datasets" / "renamed")
    here, there = look_at_head(lake, "lake:cart"), look_at_head(tmp_path / "elsewhere", "lake:renamed")
    assert here.fingerprint == there.fingerprint


def test_unlike_meanings_are_refused(lake: Path, tmp_path: Path) -> None:
    folder = write_v2(tmp_path / "bgr", (5,))
    ingest(folder, lake / "datasets" / "cart", replace(SPEC, read=ReadSpec(colour_order="bgr")))
    with pytest.raises(UserError) as refused:
        look_at_head(lake, "lake:cart")
    assert refused.value.code == "LAKE-006" and "colour_order" in refused.value.message


def test_mapped_grippers_and_others_do_not_mix(lake: Path, tmp_path: Path) -> None:
    mapped = ReadSpec(grippers=(GripperSpec(column="state", dim=2, open=1.0, closed=0.0),))
    ingest(write_v2(tmp_path / "mapped", (5,)), lake / "datasets" / "cart", replace(SPEC, read=mapped))
    with pytest.raises(UserError, match="grippers"):
        look_at_head(lake, "lake:cart")


def test_no_such_data_set(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no data set 'nothing'"):
        look_at_head(tmp_path, "lake:nothing")
