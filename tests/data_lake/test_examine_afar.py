"""Examined elsewhere: the same episodes, findings and data sets as here, whatever the format and the units."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake import examine_afar
from data_lake.examine import Examined, examine
from data_lake.examine_afar import units_of
from data_lake.published import publish_lance
from data_lake.sources import open_source
from data_lake.sources.episode import Part
from data_lake.specs import IngestSpec
from data_lake.tally import Tally
from data_lake.trial import Trial
from data_lake.version import open_version
from errors import Transient
from tests.data_lake.afar import Pretended, Pretending
from tests.data_lake.bag_recordings import demonstration, write_bag
from tests.data_lake.recordings import change_rows, write_v2
from tests.data_lake.seen import content, ingest
from tests.data_lake.test_review import FORMATS, said


@pytest.fixture(autouse=True)
def one_part_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine_afar, "UNIT_PARTS", 1)


@pytest.mark.parametrize("form", FORMATS)
def test_a_data_set_is_the_same_as_from_here(form: str, tmp_path: Path) -> None:
    """A unit per part, of sources with repetitions, bad episodes, surplus ones and pictures; once more, none."""
    write, read = FORMATS[form]
    source, order = write(tmp_path / "source"), IngestSpec(dataset="cart", embodiment="cart", read=read)
    cluster = Pretended()
    here = ingest(source, tmp_path / "here", order)
    there = ingest(source, tmp_path / "there", order, runner=Pretending(pretended=cluster))
    assert there.fingerprint == here.fingerprint and said(tmp_path / "there") == said(tmp_path / "here")
    assert content(tmp_path / "there") == content(tmp_path / "here")
    assert len(cluster.units) > 1
    cluster.units.clear()
    again = ingest(source, tmp_path / "there", order, runner=Pretending(pretended=cluster))
    assert again.num_new == 0 and said(tmp_path / "there") == said(tmp_path / "here")
    again_read = {"hdf5": 1, "rlds": 1}  # a file that cannot be read, a shard with what is unlisted
    assert len(cluster.units) == again_read.get(form, 0)


def test_a_source_of_one_part_is_one_unit(tmp_path: Path) -> None:
    """Its videos lie in a table, which each side opens."""
    ingest(write_v2(tmp_path / "source"), tmp_path / "lake/datasets/cart")
    folder, cluster = publish_lance(open_version(tmp_path / "lake", "cart"))[0], Pretended()
    ingest(folder, tmp_path / "here", label="cart")
    ingest(folder, tmp_path / "there", label="cart", runner=Pretending(pretended=cluster))
    assert content(tmp_path / "there") == content(tmp_path / "here")
    assert len([unit for unit in cluster.units if isinstance(unit, examine_afar.Unit)]) == 1


def test_videos_that_stay_where_they_are(tmp_path: Path) -> None:
    source, left = write_v2(tmp_path / "source"), IngestSpec(dataset="cart", embodiment="cart", copy="reference")
    ingest(source, tmp_path / "here", left)
    ingest(source, tmp_path / "there", left, runner=Pretending(pretended=Pretended()))
    assert content(tmp_path / "there") == content(tmp_path / "here")


def everything(found: Iterator[Examined]) -> list[Any]:
    return [
        (each.episode.part, each.episode.source_episode, each.content_hash, each.findings, each.sums.lengths)
        for each in found
    ]


def test_recordings_that_gaps_cut_are_numbered_through_all_units(tmp_path: Path) -> None:
    """The second of three gives two episodes, and the third may be left out as known to have one."""
    source = tmp_path / "bags"
    for number in range(3):
        messages = demonstration(number, 24)
        if number == 1:
            messages = [each for each in messages if not 0.8 < each.log_s < 1.6]
        write_bag(source / f"bag_{number}", messages)
    read = FORMATS["bags"][1]
    opened = open_source(source, read)
    for left_out in ({}, {0: 1}):
        here = everything(examine(opened, workers=2, tally=Tally(), read=read, left_out=left_out))
        far = examine_afar.examine_afar(opened, cluster=Pretended(), tally=Tally(), read=read, left_out=left_out)
        assert everything(far) == here
        assert [number for _, number, *_ in here] == list(range(len(left_out), 4))


@pytest.mark.parametrize("trial", [Trial(absent="no decoder"), Trial(broken_s=(0.0,), told="torn")])
def test_a_codec_is_tried_once_a_source_and_here(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, tried = open_source(write_v2(tmp_path / "source")), []
    for module in ("data_lake.examine", "data_lake.examine_afar"):
        monkeypatch.setattr(f"{module}.decode_first", lambda file: tried.append(file) or trial)
    tallies = Tally(), Tally()
    here = everything(examine(opened, workers=1, tally=tallies[0]))
    assert everything(examine_afar.examine_afar(opened, cluster=Pretended(), tally=tallies[1])) == here
    assert len(tried) == 2 and tallies[0].findings(opened.card) == tallies[1].findings(opened.card)


def test_a_node_that_sees_another_source_is_told(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "source")
    opened = open_source(source)
    shutil.copy(source / "meta/episodes.jsonl", tmp_path / "kept")
    lines = [json.loads(line) for line in (tmp_path / "kept").read_text().splitlines()]
    (source / "meta/episodes.jsonl").write_text(json.dumps({**lines[0], "length": 7}) + "\n")
    with pytest.raises(Transient, match="another on this node"):
        list(examine_afar.examine_afar(opened, cluster=Pretended(), tally=Tally()))


def test_what_was_needed_to_examine_stays_behind(tmp_path: Path) -> None:
    """No packets, no rows as the source has them."""
    source = write_v2(tmp_path / "source")
    change_rows(source / "data/chunk-000/episode_000001.parquet", action=[[0.0, float("nan")]] * 12)
    (first, bad, _) = examine_afar.examine_afar(open_source(source), cluster=Pretended(), tally=Tally())
    assert first.rows is not None and first.episode.rows is not None
    assert (first.rows.num_rows, first.episode.rows.num_rows) == (8, 0)
    assert all(not len(index.packets) and len(index.times_s) for _, index in first.videos.values())
    assert bad.rows is None and [item.code for item in bad.findings if item.severity == "error"]


@given(sizes=st.lists(st.integers(0, 40), max_size=20), most=st.integers(1, 60), known=st.sets(st.integers(0, 19)))
def test_units_hold_every_part_once_and_are_bounded(
    sizes: list[int], most: int, known: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    parts = []
    for number, size in enumerate(sizes):
        (folder / str(number)).write_bytes(bytes(size))
        parts.append(Part(files=(folder / str(number), folder / "absent")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examine_afar, "UNIT_PARTS", 3)
        patch.setattr(examine_afar, "UNIT_SOURCE_BYTES", most)
        units = list(units_of(parts, dict.fromkeys(known, 1), {folder / "0": "digest"}))
    assert [place for unit in units for place in unit.parts] == [n for n in range(len(sizes)) if n not in known]
    for unit in units:
        assert len(unit.parts) == 1 or (len(unit.parts) <= 3 and sum(sizes[place] for place in unit.parts) <= most)
        assert unit.digests == ({folder / "0": "digest"} if 0 in unit.parts else {})
