"""No component of a mixture trains on what another one holds out, whatever either calls it."""

import json
from pathlib import Path

import pytest

from data_lake.held_out import check_apart, write_recordings
from errors import UserError
from tests.data_lake.edits.test_relabel import saying
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest


def component(root: Path, name: str, contents: dict[int, str], held_out: tuple[int, ...] = ()) -> Path:
    """contents: by source episode."""
    folder = root / name
    folder.mkdir()
    entries = [{"source_episode": number, "recording": content} for number, content in contents.items()]
    (folder / "episodes.json").write_text(json.dumps({"episodes": entries}))
    write_recordings(folder, root / "datasets/none", held_out, folder)
    return folder


def test_what_is_held_out_everywhere_is_fine(tmp_path: Path) -> None:
    a = component(tmp_path, "a", {0: "x", 1: "y"}, (1,))
    b = component(tmp_path, "b", {7: "y", 8: "z"}, (7,))
    check_apart([a, b], ["a", "b"])


@pytest.mark.parametrize("turned", [False, True])
def test_a_recording_that_one_holds_out_and_another_learns_is_named(tmp_path: Path, turned: bool) -> None:
    parts = [component(tmp_path, "a", {0: "x", 1: "y"}, (1,)), component(tmp_path, "b", {7: "y", 8: "z"})]
    names = ["a", "b"]
    with pytest.raises(UserError, match="(?s)PACK-011.*b trains on 1 recording that a holds out.*source episodes 7"):
        check_apart(parts[::-1] if turned else parts, names[::-1] if turned else names)


def test_a_copy_inside_one_data_set_counts_too(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a trains on 1 recording that a holds out"):
        check_apart([component(tmp_path, "a", {0: "x", 1: "x"}, (1,))], ["a"])


def test_samples_without_a_note_are_to_be_made_anew(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(UserError, match="(?s)PACK-012.*old.*--rebuild preprocess"):
        check_apart([tmp_path / "old"], ["old"])


@pytest.mark.parametrize("older", [False, True])
def test_other_words_make_no_other_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool) -> None:
    """older: neither the data set nor the view of its episodes says which recording each is."""
    if older:
        monkeypatch.setattr("data_lake.examine.recording_digest", lambda *_: "")
    for name, folder in (("a", write_v2(tmp_path / "v2")), ("b", saying(write_v2(tmp_path / "said"), 1, "wait"))):
        ingest(folder, tmp_path / "datasets" / name)
        (tmp_path / name).mkdir()
        held_out = (1,) if name == "a" else ()
        write_recordings(tmp_path / f"datasets/{name}-out", tmp_path / "datasets" / name, held_out, tmp_path / name)
    with pytest.raises(UserError, match="(?s)PACK-011.*b trains on 1 recording that a holds out.*source episodes? 1"):
        check_apart([tmp_path / "a", tmp_path / "b"], ["a", "b"])


def test_what_was_noted_by_words_is_to_be_made_anew(tmp_path: Path) -> None:
    (tmp_path / "recordings.json").write_text('{"training": {}, "held_out": {}}')
    with pytest.raises(UserError, match="PACK-012"):
        check_apart([tmp_path], ["old"])
