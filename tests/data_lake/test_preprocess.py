"""Preprocessing: every sample has its own pixels, numbers and words, whoever decoded first."""

import json
from pathlib import Path

import lance
import numpy as np
import pytest

from data_lake.preprocess import preprocess_view, samples_schema
from data_lake.view import read_view
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, VIEWS, request_for, rows_of, write_view


def rows(out: Path) -> list[dict]:
    return lance.dataset(str(out / "samples.lance")).to_table().to_pylist()


def test_counts(coded: CodedLake) -> None:
    """Every second frame: 5 + 3 + 2 + 6 + 1 + 4 + 4 samples, the last four held out."""
    assert (coded.made.num_samples, coded.made.num_heldout) == (25, 4)
    assert coded.made.num_views == 2 * 25 - 3 - 4
    assert coded.made.num_steps == 47
    assert coded.made.marks == {"black_images": 0, "not_finite_rows": 0, "constant_action_dims": 0}


def test_every_sample_has_its_own_pixels_and_numbers(coded: CodedLake) -> None:
    found = rows(coded.out)
    expected = [(e, frame) for e, episode in enumerate(RECORDED) for frame in range(0, episode.length, 2)]
    assert [(row["episode_index"], row["frame_index"]) for row in found] == expected
    for row in found:
        episode, frame = row["episode_index"], row["frame_index"]
        for view in VIEWS:
            pixels = row[f"view_{view}"]
            assert (pixels is not None) == (view in RECORDED[episode].views)
            if pixels is not None:
                assert set(np.frombuffer(pixels, np.uint8).reshape(-1, 3)[:, 0]) == {episode + 1}
                assert tuple(np.frombuffer(pixels, np.uint8)[1:3]) == (frame, 100 + VIEWS.index(view))
        np.testing.assert_array_equal(row["proprio"], rows_of(episode, frame + 1)[0][frame])
        assert row["num_views"] == len(RECORDED[episode].views)
        assert row["source_episode"] == 10 + episode
        assert row["split"] == (episode == 6)


def test_steps_and_where_a_sample_begins_in_them(coded: CodedLake) -> None:
    actions = np.array(lance.dataset(str(coded.out / "steps.lance")).to_table()["action"].to_pylist())
    for row in rows(coded.out):
        here = rows_of(row["episode_index"], RECORDED[row["episode_index"]].length)[1][row["frame_index"] :]
        assert row["num_steps"] == len(here)
        np.testing.assert_allclose(actions[row["first_step"] : row["first_step"] + row["num_steps"]], here)


def test_words_are_those_of_training_episodes(coded: CodedLake) -> None:
    """ "close" is said in the held-out episode only, so it is unknown."""
    card = json.loads((coded.out / "card.json").read_text())
    assert "close" not in card["tokenizer"]["words"]
    assert card["instructions"][-1] == "close the drawer"
    last = rows(coded.out)[-1]
    assert last["text_tokens"][0] == -1
    assert card["instructions"][last["task_index"]] == "close the drawer"


def test_the_same_content_for_any_number_of_workers_and_batches(coded: CodedLake, tmp_path: Path) -> None:
    """With room for one or two episodes' images at a time, and for all of them."""
    reported: list[tuple[int, int]] = []
    request = request_for(heldout_episodes=(16,), workers=1, image_bytes=10_000)
    preprocess_view(coded.view, coded.dataset, request, tmp_path, lambda done, total: reported.append((done, total)))
    assert len(reported) > 3
    assert reported[-1] == (7, 7)
    for table in ("samples.lance", "steps.lance"):
        assert lance.dataset(str(tmp_path / table)).to_table() == lance.dataset(str(coded.out / table)).to_table()
    assert (tmp_path / "card.json").read_bytes() == (coded.out / "card.json").read_bytes()


def test_a_view_of_some_episodes_in_another_order(coded: CodedLake, tmp_path: Path) -> None:
    """A view names episodes 3 and 1 only: their samples, in that order."""
    content = json.loads((coded.view_folder / "episodes.json").read_text())
    content["episodes"] = [content["episodes"][3], content["episodes"][1]]
    (tmp_path / "episodes.json").write_text(json.dumps(content))
    preprocess_view(read_view(tmp_path), coded.dataset, request_for(), tmp_path)
    assert [row["episode_index"] for row in rows(tmp_path)] == [3] * 6 + [1] * 3
    assert [row["first_step"] for row in rows(tmp_path)] == [0, 2, 4, 6, 8, 10, 12, 14, 16]


def test_state_as_text_depends_on_the_sample(coded: CodedLake, tmp_path: Path) -> None:
    preprocess_view(coded.view, coded.dataset, request_for(inputs={"state": "text"}), tmp_path)
    assert [row["text_tokens"][-1] for row in rows(tmp_path)[:5]] == [0, 2, 4, 6, 8]


def test_a_video_that_lacks_frames_stops_it_with_its_name(coded: CodedLake, tmp_path: Path) -> None:
    """The view promises a rate that the videos do not have; what is raised is the error itself."""
    vector = coded.view.vector
    write_view(tmp_path, RECORDED, vector, fps=40.0)
    with pytest.raises(UserError) as caught:
        preprocess_view(read_view(tmp_path), coded.dataset, request_for(), tmp_path)
    assert caught.value.code.startswith("DECODE-00")
    assert caught.value.where.startswith("episode 0 · view top")
    assert not (tmp_path / "card.json").exists()


def test_schema_of_samples() -> None:
    assert samples_schema(["a", "b"], 3).names[-2:] == ["view_a", "view_b"]
