"""A lake data set with coded pixels, and what preprocessing makes of it, built once for all tests here."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from data_lake.declaring import Declared
from data_lake.preprocess import Preprocessed, preprocess_view
from data_lake.view import DatasetView, read_view
from tests.data_lake.lake_fixture import RECORDED, request_for, write_dataset, write_view


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedLake:
    """dataset: folder of the tables. view_folder: what ingest would have written. out: the samples."""

    dataset: Path
    view_folder: Path
    view: DatasetView
    out: Path
    made: Preprocessed


@pytest.fixture(scope="session")
def coded(tmp_path_factory: pytest.TempPathFactory) -> CodedLake:
    """Seven episodes, the last one held out; a sample at every second frame."""
    root = tmp_path_factory.mktemp("coded")
    vector = write_dataset(root / "dataset", RECORDED)
    write_view(root / "view", RECORDED, vector)
    (root / "out").mkdir()
    view = read_view(root / "view")
    made = preprocess_view(view, root / "dataset", request_for(heldout_episodes=(16,)), root / "out")
    return CodedLake(dataset=root / "dataset", view_folder=root / "view", view=view, out=root / "out", made=made)


@pytest.fixture
def let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlike meanings, as releases did that compared none: their data sets are still there."""
    monkeypatch.setattr(Declared, "_alike", lambda *_: None)
