"""The contract that every entry of SOURCES keeps, and which format `auto` chooses."""

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest

from data_lake.published import publish_lance
from data_lake.sources import SOURCES, episodes, open_source
from data_lake.sources.episode import (
    TAKEN_BY_ALL,
    Pictures,
    VideoSpan,
    ask_together,
    asked,
    declared_rate,
    view_name,
)
from data_lake.specs import ReadSpec
from data_lake.version import open_version
from errors import UserError
from lookup import lookup
from tests.data_lake import bag_recordings, rlds_recordings
from tests.data_lake.hdf5_recordings import write_robomimic
from tests.data_lake.recordings import CAMERA, TASKS, write_v2, write_v3
from tests.data_lake.seen import ingest

LENGTHS = (8, 12, 10)


def lerobot_v2(folder: Path) -> Path:
    return write_v2(folder / "v2", LENGTHS)


def lerobot_v3(folder: Path) -> Path:
    return write_v3(folder / "v3", write_v2(folder / "v2", LENGTHS), LENGTHS)


def rlds(folder: Path) -> Path:
    records = [rlds_recordings.record(episode, length) for episode, length in enumerate(LENGTHS)]
    return rlds_recordings.write_rlds(folder / "cart/1.0.0", {"train": [records[:2]], "val": [records[2:]]})


def hdf5_file(folder: Path) -> Path:
    return write_robomimic(folder / "hdf5/demo.hdf5", LENGTHS)


def hdf5_folder(folder: Path) -> Path:
    return write_robomimic(folder / "hdf5/demo.hdf5", LENGTHS).parent


def lerobot_lance(folder: Path) -> Path:
    ingest(lerobot_v2(folder), folder / "lake/datasets/cart")
    return publish_lance(open_version(folder / "lake", "cart"))[0]


def bags_mcap(folder: Path) -> Path:
    return bag_recordings.write_bags(folder / "bags/mcap", LENGTHS, "mcap")


def bags_sqlite(folder: Path) -> Path:
    return bag_recordings.write_bags(folder / "bags/db3", LENGTHS, "db3")


RECORDINGS: dict[str, list[Callable[[Path], Path]]] = {
    "lerobot": [lerobot_v2, lerobot_v3],
    "lerobot-lance": [lerobot_lance],
    "hdf5": [hdf5_file, hdf5_folder],
    "rlds": [rlds],
    "rosbag2": [bags_mcap, bags_sqlite],
}
READ = {"rlds": ReadSpec(fps="10"), "rosbag2": bag_recordings.READ}  # what the files of a format never say


def _is_there(view: VideoSpan | Pictures) -> bool:
    return view.path.is_file() or (isinstance(view, VideoSpan) and view.read is not None)


def test_every_source_is_enrolled() -> None:
    assert RECORDINGS.keys() == SOURCES.keys()


@pytest.mark.parametrize(
    ("name", "record"), [(name, record) for name, records in RECORDINGS.items() for record in records]
)
def test_three_episodes_come_back(name: str, record: Callable[[Path], Path], tmp_path: Path) -> None:
    path = record(tmp_path)
    adapter = lookup(SOURCES, name, "source format")
    assert adapter.recognises(path) and not adapter.recognises(tmp_path)
    source = adapter(path, READ.get(name, ReadSpec()))
    assert source.card.num_episodes == 3 and source.card.findings == ()
    found = list(source.episodes())
    assert [item.source_episode for item in found] == [0, 1, 2]
    for item, length in zip(found, LENGTHS, strict=True):
        assert item.rows is not None and item.findings == ()
        assert item.rows.num_rows == item.length == length
        assert set(item.rows["episode_index"].to_pylist()) == {item.source_episode}
        assert item.instruction == TASKS[item.source_episode % 2]
        assert set(item.rows["task"].to_pylist()) == {item.instruction}
        assert item.views and all(_is_there(view) for view in item.views.values())
    assert [item.source_episode for item in source.episodes()] == [0, 1, 2], "a source can be read again"


def test_auto_and_a_dotted_name_of_a_third_party(tmp_path: Path) -> None:
    path = lerobot_v2(tmp_path)
    assert len(list(episodes(path))) == 3
    other = open_source(path, source_format="data_lake.sources.lerobot:LeRobotFolder")
    assert other.card.format == "lerobot"


@pytest.mark.parametrize(("name", "code"), [("nowhere", "LAKE-002"), ("empty", "LAKE-002")])
def test_what_is_no_source(name: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as error:
        open_source(tmp_path / name)
    assert error.value.code == code


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="lerobot"):
        open_source(tmp_path, source_format="lerobt")


def test_views_have_canonical_names() -> None:
    names = (CAMERA, "observation.image", "wrist")
    assert [view_name(camera) for camera in names] == ["front", "image", "wrist"]


@pytest.mark.parametrize(
    ("fps", "rate"), [(None, None), (5, 5), (29.97, Fraction(2997, 100)), ("30000/1001", Fraction(30000, 1001))]
)
def test_a_declared_rate_is_a_rational(fps: str | float | None, rate: Fraction | None, tmp_path: Path) -> None:
    assert declared_rate(tmp_path, ReadSpec(fps=fps)) == rate


@pytest.mark.parametrize("fps", ["", "fast", "1/0", "-5", 0, "1e99", float("nan"), float("inf")])
def test_what_is_no_rate_is_asked_for_again(fps: str | float, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="rate") as refused:
        declared_rate(tmp_path, ReadSpec(fps=fps))
    assert refused.value.code == "LAKE-035" and "ingest.read.fps" in refused.value.next_step


def test_what_a_format_would_ignore_is_refused(tmp_path: Path) -> None:
    for read, field in ((ReadSpec(fps=15), "fps"), (ReadSpec(gaps="mark"), "gaps"), (ReadSpec(state=("a",)), "state")):
        with pytest.raises(UserError, match=f"ingest.read.{field} would change nothing") as refused:
            open_source(lerobot_v2(tmp_path / field), read)
        assert refused.value.code == "LAKE-037"
    assert open_source(lerobot_v2(tmp_path / "sound"), ReadSpec(action_mode="delta")).card.num_episodes == 3


def test_fields_that_sources_take_are_fields_of_the_spec() -> None:
    known = {each.name for each in fields(ReadSpec)}
    taken = [lookup(SOURCES, name, "source format").TAKES for name in SOURCES]
    assert known == TAKEN_BY_ALL.union(*taken), "none that nobody takes"


def test_a_folder_of_sources_names_them(tmp_path: Path) -> None:
    for number in range(10):
        write_v2(tmp_path / f"set-{number}", (3,))
    (tmp_path / "notes").mkdir()
    with pytest.raises(UserError, match=r"(?s)LAKE-002: a folder that holds 10 sets: set-0, .*set-7, …\n.*set-0$"):
        open_source(tmp_path)


@pytest.mark.parametrize("lost", ["meta", "meta/info.json"])
def test_a_lerobot_folder_that_lost_its_metadata_is_named_as_such(lost: str, tmp_path: Path) -> None:
    write_v2(tmp_path, (3,))
    (tmp_path / lost).rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="LAKE-002: a LeRobot folder without its meta/info.json"):
        open_source(tmp_path)


def test_all_that_is_missing_is_asked_for_at_once() -> None:
    def ask(name: str) -> None:
        raise asked(Path("a.bag"), name, f"what {name} is", "a number", 5)

    with pytest.raises(UserError) as refused:
        ask_together(lambda: ask("fps"), lambda: None, lambda: ask("max_age_s"))
    assert refused.value.message == "the source does not say what fps is, nor what max_age_s is"
    for name in ("fps", "max_age_s"):
        assert f"set ingest.read.{name} to a number, as in --set ingest.read.{name}=5" in refused.value.next_step

    def broken() -> None:
        raise UserError("LAKE-036", "the source says otherwise")

    with pytest.raises(UserError, match="LAKE-036"):
        ask_together(lambda: ask("fps"), broken)
    ask_together(lambda: None)
