"""A run's sums come back from disk as they were, to the last bit."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data_lake.ledger_file import packed, unpacked
from data_lake.sources.episode import Episode
from data_lake.tally import Sums
from tests.data_lake.recordings import rows_of

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=5)


def summed(lengths: list[int]) -> Sums:
    sums = Sums()
    for number, length in enumerate(lengths):
        rows = rows_of(number, length, 0)
        sums.look(Episode(source_episode=number, rows=rows))
        sums.add(rows)
    sums.misfits["front", 0] = 7
    return sums


def shown(sums: Sums) -> object:
    columns = {
        name: (each.moments.as_json(), each.rows.rows().tolist(), each.rows.stride, each.rows.count)
        for name, each in sums.columns.columns.items()
    }
    moments = {name: each.as_json() for name, each in sums.moments.items()}
    return columns, moments, sums.lengths, sums.misfits, sums.columns.complete, sums.columns.has_quantiles


@given(lengths=LENGTHS)
def test_they_come_back(lengths: list[int]) -> None:
    sums = summed(lengths)
    with TemporaryDirectory() as folder:
        file = Path(folder, "run.npz")
        file.write_bytes(packed({"keys": ["a"]}, sums))
        found = unpacked(file)
    assert found is not None and found[0] == {"keys": ["a"]}
    assert shown(found[1]) == shown(sums)
    assert found[1].columns.columns["action"].rows.rows().dtype == np.float32


def test_no_file_is_nothing(tmp_path: Path) -> None:
    assert unpacked(tmp_path / "run.npz") is None
