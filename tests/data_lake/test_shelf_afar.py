"""Videos that a cluster writes: every byte arrives in order, lists are bounded, and a file that changed is noticed."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake import shelf_afar
from data_lake.shelf_afar import ShelvesAfar
from data_lake.writer import _write
from errors import Transient
from tests.data_lake.afar import Kept, Pretended
from tests.data_lake.test_shelf import row, stored_in


def shelves(folder: Path, cluster: Pretended) -> ShelvesAfar:
    return ShelvesAfar(folder / "videos.lance", partial(_write, folder / "videos.lance"), cluster)


@settings(max_examples=15)
@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=12), shelf_bytes=st.integers(1, 400))
def test_every_byte_arrives_in_order(
    sizes: list[int], shelf_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, cluster = tmp_path_factory.mktemp("shelf"), Pretended()
    contents = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf_afar, "SHELF_BYTES", shelf_bytes)
        afar = shelves(folder, cluster)
        for number, content in enumerate(contents):
            (folder / f"{number}.mp4").write_bytes(content)
            afar.put(folder / f"{number}.mp4" if number % 2 else partial(bytes, content), row(number, content))
        fragments = afar.finish()
    assert afar.durable() == (len(sizes), fragments)
    for each in cluster.units:
        assert len(each) == 1 or sum(told["file_size"] for _, told in each) <= shelf_bytes
    assert stored_in(folder / "videos.lance", fragments) == list(enumerate(contents))


@pytest.mark.parametrize("now", [b"other", b"shor"])
def test_a_file_that_is_no_longer_what_was_examined(now: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(now)
    afar = shelves(tmp_path, Pretended())
    with pytest.raises(Transient, match=r"a\.mp4"):
        afar.put(path, row(0, b"bytes"))
        afar.finish()


class Pending(Kept):
    """Done only when it is waited for."""

    def __init__(self, value: Any, open_ones: list["Pending"]) -> None:
        super().__init__(value)
        self.open_ones = open_ones
        open_ones.append(self)

    def done(self) -> bool:
        return False

    def result(self) -> Any:
        self.open_ones.remove(self)
        return super().result()


def test_no_more_lists_than_workers_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_afar, "SHELF_BYTES", 1)
    pending: list[Pending] = []
    most: list[int] = []

    class Slow(Pretended):
        def submit(self, work: Any, unit: Any) -> Pending:
            found = Pending([], pending)
            most.append(len(pending))
            return found

    afar = shelves(tmp_path, Slow(workers=3))
    for number in range(9):
        afar.put(tmp_path / "never.mp4", row(number, b"bytes"))
        assert afar.durable()[0] == max(0, number - 3)
    assert afar.finish() == [] and afar.durable()[0] == 9 and max(most) == 3


def test_nothing_put_is_nothing_sent(tmp_path: Path) -> None:
    cluster = Pretended()
    assert shelves(tmp_path, cluster).finish() == [] and cluster.units == []
    assert list(tmp_path.iterdir()) == []
