"""The remote passes of `bench loader` read the same batches from both places and count what each costs."""

import os
from pathlib import Path
from unittest.mock import patch

from benchmarks.loader_remote import SHUFFLES, TIERS, measured, summed_up
from data_lake.preprocess import preprocess_view
from data_lake.view import read_view
from tests.data_lake.lake_fixture import RECORDED, request_for, write_dataset, write_view


def test_both_places_give_the_same_and_what_passed_is_counted(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    dataset = lake / "datasets/coded"
    dataset.mkdir(parents=True)
    write_view(lake / "ingest/view", RECORDED, write_dataset(dataset, RECORDED))
    for tier in TIERS:
        out = lake / "preprocess" / tier / "attempts/1"
        out.mkdir(parents=True)
        preprocess_view(read_view(lake / "ingest/view"), dataset, request_for(images=tier), out)
    with patch.dict(os.environ):
        found = measured(lake, 0.0, num_steps=3, rounds=1)
    assert found.keys() == {f"{tier}_{order}" for tier in TIERS for order in SHUFFLES}
    for (each,) in found.values():
        assert each["share"] == each["remote"]["per_s"] / each["local"]["per_s"] and each["requests_per_batch"] >= 1
        assert len(each["remote"]["waits_s"]) == 3 and each["bytes_per_useful_byte"] > 0
    target, shown = summed_up({"0.03_s": found})
    assert target.value == min(each["share"] for (each,) in found.values()) and "0.03 s late" in target.note
    assert shown["0.03_s"].keys() == found.keys()
