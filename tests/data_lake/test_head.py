"""All of a data set as a source: what came in, a recording counted once, the same digest for the same content."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.curation import Choice
from data_lake.head import leave_out, look_at_head, take_head
from data_lake.ingested import Ingested
from data_lake.refs import SourceRef
from data_lake.saved_views import SavedView, save
from data_lake.specs import GripperSpec, IngestSpec, ReadSpec
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


@pytest.mark.usefixtures("let_in")
def test_unlike_meanings_are_refused(lake: Path, tmp_path: Path) -> None:
    folder = write_v2(tmp_path / "bgr", (5,))
    ingest(folder, lake / "datasets" / "cart", replace(SPEC, read=ReadSpec(colour_order="bgr")))
    with pytest.raises(UserError) as refused:
        look_at_head(lake, "lake:cart")
    assert refused.value.code == "LAKE-006" and "colour_order" in refused.value.message


def test_mapped_grippers_and_others_do_not_mix(lake: Path, tmp_path: Path) -> None:
    mapped = ReadSpec(grippers=(GripperSpec(column="state", dim=2, open=1.0, closed=0.0),))
    with pytest.raises(UserError, match="grippers"):
        ingest(write_v2(tmp_path / "mapped", (5,)), lake / "datasets" / "cart", replace(SPEC, read=mapped))


def test_no_such_data_set(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no data set 'nothing'"):
        look_at_head(tmp_path, "lake:nothing")


def kept(lake: Path, name: str, **choice: str) -> SavedView:
    root = lake / "datasets" / "cart"
    return save(root, name, Choice(**choice), who="me", version=1, num_episodes=1)


def taken(lake: Path, source: SourceRef, out: Path, spec: IngestSpec = SPEC) -> Ingested:
    out.mkdir(exist_ok=True)
    return take_head(lake, source, spec, out)


def test_a_saved_view_is_a_source(lake: Path, tmp_path: Path) -> None:
    kept(lake, "long", where="length > 8")
    source = look_at_head(lake, "lake:cart/long")
    assert source.path == "lake:cart@2/long@1"
    found = taken(lake, source, tmp_path / "out")
    assert [entry["length"] for entry in found.view["episodes"]] == [12, 10]
    assert look_at_head(lake, "lake:cart@1/long").path == "lake:cart@1/long@1"
    assert taken(lake, look_at_head(lake, "lake:cart@1/long@1"), tmp_path / "out").num_episodes == 1


def test_a_view_that_keeps_the_same_episodes_is_the_same(lake: Path, tmp_path: Path) -> None:
    """By whatever words, in whatever version; more episodes that match are something new."""
    kept(lake, "long", where="length > 8")
    kept(lake, "named", exclude="source:0")
    kept(lake, "all", where="length > 0")
    sources = [look_at_head(lake, f"lake:cart/{name}") for name in ("long", "named", "all")]
    assert sources[0].fingerprint == sources[1].fingerprint != sources[2].fingerprint
    assert sources[2].fingerprint == look_at_head(lake, "lake:cart").fingerprint
    before = taken(lake, sources[0], tmp_path / "out").fingerprint
    ingest(write_v2(tmp_path / "short", (8, 12, 10, 6)), lake / "datasets" / "cart")
    assert look_at_head(lake, "lake:cart/long").fingerprint == sources[0].fingerprint
    assert taken(lake, look_at_head(lake, "lake:cart/long"), tmp_path / "out").fingerprint == before
    ingest(write_v2(tmp_path / "more", (8, 12, 10, 6, 20)), lake / "datasets" / "cart")
    assert look_at_head(lake, "lake:cart/long").fingerprint != sources[0].fingerprint
    assert taken(lake, sources[0], tmp_path / "out").num_episodes == 2  # a Retry sees what its run saw


def test_a_changed_view_leaves_a_started_run_alone(lake: Path, tmp_path: Path) -> None:
    kept(lake, "mine", where="length > 8")
    source = look_at_head(lake, "lake:cart/mine")
    kept(lake, "mine", where="length < 9")
    assert [entry["length"] for entry in taken(lake, source, tmp_path / "out").view["episodes"]] == [12, 10]
    assert look_at_head(lake, "lake:cart/mine").path == "lake:cart@2/mine@2"


@pytest.mark.usefixtures("let_in")
def test_what_other_sources_mean_does_not_matter_to_a_view_without_them(lake: Path, tmp_path: Path) -> None:
    folder = write_v2(tmp_path / "bgr", (5,))
    ingest(folder, lake / "datasets" / "cart", replace(SPEC, read=ReadSpec(colour_order="bgr")))
    kept(lake, "rgb", where="colour_order = 'rgb'")
    assert taken(lake, look_at_head(lake, "lake:cart/rgb"), tmp_path / "out").num_episodes == 3


def test_a_view_that_keeps_nothing_or_changes_its_mind(lake: Path, tmp_path: Path) -> None:
    kept(lake, "none", where="length > 99")
    with pytest.raises(UserError, match="LAKE-209"):
        look_at_head(lake, "lake:cart/none")
    kept(lake, "long", where="length > 8")
    source = replace(look_at_head(lake, "lake:cart/long"), fingerprint="of another day")
    with pytest.raises(UserError, match=r"LAKE-210.*lake:cart@2/long@1"):
        taken(lake, source, tmp_path / "out")


@pytest.mark.parametrize("source", ["lake:cart/none", "lake:cart/long@9", "lake:cart/long@x", "lake:cart/"])
def test_no_such_view(lake: Path, source: str) -> None:
    kept(lake, "long", where="length > 8")
    with pytest.raises(UserError, match="LAKE-205|LAKE-212"):
        look_at_head(lake, source)


def test_source_episodes_are_left_out_of_the_loop_not_of_the_lake(lake: Path, tmp_path: Path) -> None:
    """The same identity as a view that says the same, or a source that never had them."""
    whole = taken(lake, look_at_head(lake, "lake:cart"), tmp_path / "out")
    less = leave_out(whole, (0,), tmp_path / "out")
    assert (less.num_episodes, less.num_frames) == (2, 22)
    shown = json.loads((tmp_path / "out" / "episodes.json").read_text())["episodes"]
    assert [entry["source_episode"] for entry in shown] == [1, 2]
    kept(lake, "named", exclude="source:0")
    assert taken(lake, look_at_head(lake, "lake:cart/named"), tmp_path / "out").fingerprint == less.fingerprint
    for exclude, code in (((7,), "LAKE-208"), ((0, 1, 2), "LAKE-209")):
        with pytest.raises(UserError, match=code):
            leave_out(whole, exclude, tmp_path / "out")
