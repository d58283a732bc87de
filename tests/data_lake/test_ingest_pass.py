"""A pass that begins on a version knows what it holds; who is turned away is counted, and refused where nobody fits."""

from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.declaring import Declared
from data_lake.examine import examine
from data_lake.fitting import Stranger
from data_lake.ingest_pass import Pass, onto_newest
from data_lake.ledger import Verdict
from data_lake.review import Seen
from data_lake.sources import open_source
from data_lake.tally import Tally
from tests.data_lake.recordings import CAMERA, FPS, TASKS, write_v2
from tests.data_lake.seen import LENGTHS, SPEC, ingest


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def begun(tmp_path: Path) -> Pass:
    declared = Declared(dataset="cart", source="v2", recorded=(), said={})
    return onto_newest(tmp_path / "cart", "v2", SPEC, declared=declared, cluster=None)


def test_onto_nothing(v2: Path, tmp_path: Path) -> None:
    done = begun(tmp_path)
    assert (done.info, done.tasks, done.held.find(0, "")) == (None, {}, None)
    assert done.kind(open_source(v2)).features == {}


def test_onto_a_version(v2: Path, tmp_path: Path) -> None:
    first = ingest(v2, tmp_path / "cart")
    done = begun(tmp_path)
    entries = first.view["episodes"]
    assert [done.held.find(each["source_episode"], each["content_hash"]) for each in entries] == entries
    assert done.tasks == {text: place for place, text in enumerate(TASKS)}
    kind = done.kind(open_source(v2))
    assert (kind.fps, kind.features["action"]["shape"], kind.features[CAMERA]["shape"]) == (FPS, [2], [32, 32, 3])


def test_who_is_turned_away(v2: Path, tmp_path: Path) -> None:
    ingest(v2, tmp_path / "cart")
    done, source = begun(tmp_path), open_source(v2)
    kind = done.kind(source)
    kind.features["action"] = kind.features["action"] | {"shape": [7]}
    (examined, *_) = examine(source, workers=1, tally=Tally())
    with pytest.raises(Stranger) as stranger:
        kind.admit(examined)
    seen = Seen(verdict=Verdict.of(examined), findings=examined.findings, examined=examined)
    done.turn_away(seen, stranger.value)
    (bad,) = done.bad
    assert bad.verdict == replace(seen.verdict, content_hash="") and bad.findings[-1].code == "LAKE-019"
    done.ensure_some_fit(2)
    with pytest.raises(Stranger):
        done.ensure_some_fit(1)
    done.entries.append({})
    done.ensure_some_fit(1)
