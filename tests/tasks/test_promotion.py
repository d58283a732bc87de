"""Promotion: replay of the log, and aliases that stay true whoever moves them at once."""

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import Transient, UserError
from tasks.promotion import AuditLog, Move, Standing, Version, champion, move, replay, rollback, settle


def version(number: int) -> Version:
    return Version(
        name="m", number=number, location=f"at/{number}", artifact=f"a{number}", fingerprint=f"f{number}", tags={}
    )


def moved(action: str, number: int) -> Move:
    return Move(action=action, version=number, fingerprint=f"f{number}", before=None, who="w", why="y", at="t")


@dataclass(kw_only=True)
class FakeShelf:
    """Versions 1 to 5 in memory; aliases are set one by one, with a chance for others in between."""

    folder: Path
    numbers: range = range(1, 6)
    aliases: dict[str, int] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def versions(self, name: str) -> list[Version]:
        return [version(number) for number in self.numbers]

    def audit(self, name: str) -> AuditLog:
        return AuditLog(folder=self.folder / name)

    def set_aliases(self, name: str, wanted: Mapping[str, int]) -> None:
        for alias, number in wanted.items():
            threading.Event().wait(random.random() / 1000)
            self.aliases[alias] = number
            self.seen.append(self.aliases["champion"])
        for alias in {"previous", "challenger"} - wanted.keys():
            self.aliases.pop(alias, None)

    def verify(self, location: str, digest: str) -> None:
        if location in self.broken:
            raise Transient(f"{location} differs")


@pytest.fixture
def shelf(tmp_path: Path) -> FakeShelf:
    return FakeShelf(folder=tmp_path)


def test_replay_by_hand() -> None:
    moves = [moved("champion", 1), moved("challenger", 2), moved("champion", 2), moved("champion", 3)]
    assert replay(moves[:2]) == Standing(champions=(1,), challenger=2)
    assert replay(moves).aliases == {"champion": 3, "previous": 2}
    assert replay([*moves, moved("rollback", 2)]).aliases == {"champion": 2, "previous": 1}
    assert replay([]).aliases == {}


actions = st.lists(
    st.builds(moved, st.sampled_from(["champion", "challenger", "rollback"]), st.integers(1, 4)), max_size=12
)


@given(actions)
def test_a_rollback_undoes_one_promotion(moves: list[Move]) -> None:
    before = replay(moves)
    if before.champions and 9 not in before.champions:
        after = replay([*moves, moved("champion", 9), moved("rollback", before.champions[-1])])
        assert after.champions == before.champions


@given(actions)
def test_no_version_is_its_own_predecessor(moves: list[Move]) -> None:
    found = replay(moves)
    assert len(set(found.champions)) == len(found.champions)


def test_twenty_at_once_leave_one_order_and_one_champion(shelf: FakeShelf) -> None:
    def act(number: int) -> None:
        if number % 4 == 3:
            try:
                rollback(shelf, "m", who=f"w{number}", why="", at="")
            except UserError:
                return  # came before there was anything to go back to
        else:
            move(shelf, "m", lambda found: moved("champion", number % 5 + 1))

    threads = [threading.Thread(target=act, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    moves = shelf.audit("m").read()
    assert [path.name for path in sorted((shelf.folder / "m").iterdir())] == [
        f"{n:06d}.json" for n in range(1, len(moves) + 1)
    ]
    assert 15 <= len(moves) <= 20
    assert shelf.aliases == replay(moves).aliases
    assert set(shelf.seen) <= set(shelf.numbers)


def test_a_kill_before_the_aliases_is_mended(shelf: FakeShelf) -> None:
    move(shelf, "m", lambda found: moved("champion", 1))
    shelf.audit("m").append(2, moved("champion", 2))  # and then the writer was killed
    assert shelf.aliases == {"champion": 1}
    assert champion(shelf, "m") == version(2)
    assert shelf.aliases == {"champion": 2, "previous": 1}


def test_who_loses_the_race_decides_again(shelf: FakeShelf) -> None:
    asked: list[tuple[int, ...]] = []

    def choose(found: Standing) -> Move:
        if not asked:
            shelf.audit("m").append(1, moved("champion", 3))  # somebody was faster
        asked.append(found.champions)
        return moved("challenger", 4)

    move(shelf, "m", choose)
    assert asked == [(), (3,)]
    assert shelf.aliases == {"champion": 3, "challenger": 4}


def test_a_rollback_reads_the_files_first(shelf: FakeShelf) -> None:
    for number in (1, 2):
        move(shelf, "m", lambda found, number=number: moved("champion", number))
    shelf.broken.add("at/1")
    with pytest.raises(Transient):
        rollback(shelf, "m", who="w", why="", at="")
    assert shelf.aliases["champion"] == 2
    assert len(shelf.audit("m").read()) == 2


def test_moves_of_a_lost_registry_count_for_nothing(shelf: FakeShelf) -> None:
    move(shelf, "m", lambda found: moved("champion", 1))
    shelf.audit("m").append(2, Move(action="champion", version=2, fingerprint="other", before=1, who="", why="", at=""))
    assert settle(shelf, "m").champions == (1,)
    assert champion(FakeShelf(folder=shelf.folder, numbers=range(0)), "m") is None
