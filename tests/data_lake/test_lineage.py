"""Which data sets hold which content, and that a broken neighbour hides nothing else."""

from dataclasses import replace
from pathlib import Path

from data_lake.doctor import doctor
from data_lake.ingest import ingest_source
from data_lake.lineage import lineage
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2, write_v3


def ingest(source: Path, lake: Path, name: str) -> None:
    spec = replace(SPEC, dataset=name)
    ingest_source(source, spec, dataset_root=lake / "datasets" / name, out_dir=lake / f"out-{name}")


def test_the_same_content_is_known_by_its_hash(tmp_path: Path) -> None:
    v2, lake = write_v2(tmp_path / "v2"), tmp_path / "lake"
    assert lineage(lake) == {}
    ingest(v2, lake, "cart")
    ingest(write_v3(tmp_path / "v3", v2), lake, "other")
    held = lineage(lake)
    assert len(held) == 6, "of each episode its content and its recording"
    assert {tuple(each) for each in held.values()} == {(("cart", number), ("other", number)) for number in range(3)}
    found = [item for item in doctor("cart", lake=lake)["findings"] if item["code"] == "LAKE-148"]
    assert [(item["severity"], item["episode"]) for item in found] == [("note", 0)]
    assert found[0]["message"].endswith("episode 0 of other (and in 2 more episodes)")
    assert doctor(str(v2), lake=tmp_path / "empty")["findings"] == doctor(str(v2))["findings"]


def test_a_broken_neighbour_is_left_out(tmp_path: Path) -> None:
    v2, lake = write_v2(tmp_path / "v2"), tmp_path / "lake"
    ingest(v2, lake, "cart")
    (lake / "datasets/broken/manifests").mkdir(parents=True)
    (lake / "datasets/broken/manifests/00000001.json").write_text("{")
    assert {name for each in lineage(lake).values() for name, _ in each} == {"cart"}
