"""Preprocessing: every sample has its own pixels, numbers and words, whoever decoded first."""

import json
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pytest

from data_lake.earlier import Earlier, Output
from data_lake.files import sha256
from data_lake.fragments import samples_schema
from data_lake.packing import TokenCount
from data_lake.preprocess import preprocess_view
from data_lake.runners import Runner
from data_lake.samples import SampleTable
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
    assert set(coded.made.marks) == {
        "black_images", "not_finite_rows", "still_segments", "jumps", "constant_action_dims",
    }  # fmt: skip
    assert not any(coded.made.marks.values())


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


def test_the_same_content_for_any_blocks_and_batches(
    coded: CodedLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An episode in each block and one image in memory at a time, or all of them in one block."""
    reported: list[tuple[int, int]] = []
    monkeypatch.setattr("data_lake.blocks.MAX_EPISODES", 1)
    request = request_for(heldout_episodes=(16,), image_bytes=1)
    preprocess_view(
        coded.view, coded.dataset, request, tmp_path, report=lambda done, total: reported.append((done, total))
    )
    assert reported == [(done, 7) for done in range(8)]
    same(tmp_path, coded.out)


def same(out: Path, other: Path) -> None:
    """The same rows in the same order, and the same card, byte for byte."""
    for table in ("samples.lance", "steps.lance"):
        assert lance.dataset(str(out / table)).to_table() == lance.dataset(str(other / table)).to_table()
    assert (out / "card.json").read_bytes() == (other / "card.json").read_bytes()


def test_what_an_earlier_build_has_is_adopted(
    coded: CodedLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a view without two of the episodes and with two others, only blocks that differ are made; what comes out is
    what a build from nothing gives, vocabulary and statistics included."""
    monkeypatch.setattr("data_lake.blocks.MAX_EPISODES", 2)
    episodes = coded.view.episodes
    first, later = (replace(coded.view, episodes=some) for some in (episodes[:5], episodes[:1] + episodes[3:]))
    for name in ("first", "adopting", "fresh"):
        (tmp_path / name).mkdir()
    preprocess_view(first, coded.dataset, request_for(), tmp_path / "first")
    linked: dict[str, str] = {}
    out, digests = (
        tmp_path / "adopting",
        {name: sha256(tmp_path / "first" / name) for name in files_of(tmp_path / "first")},
    )
    earlier = Earlier(
        out,
        [Output(folder=tmp_path / "first", digests=digests)],
        vouch=lambda path, digest: linked.update({path.relative_to(out).as_posix(): digest}),
    )
    made = preprocess_view(later, coded.dataset, request_for(), out, earlier=earlier)
    fresh = preprocess_view(later, coded.dataset, request_for(), tmp_path / "fresh")
    assert made == replace(fresh, num_adopted=made.num_adopted)
    assert (fresh.num_adopted, made.num_adopted) == (0, 3)
    assert sum(name.startswith("blocks/") for name in linked) == 2
    assert linked == {name: sha256(out / name) for name in linked}, "whatever is vouched for is what is there"
    same(out, tmp_path / "fresh")


def test_an_append_makes_only_what_came(coded: CodedLake, tmp_path: Path) -> None:
    """Builds of 3, of 4 and of all 7 episodes, one block each, every one of them after the one before: whoever comes
    later finds a block in the pieces in which it was made. What comes out is what a build from nothing gives."""
    counts, made = (3, 4, 7, 7), []
    outs = [tmp_path / str(number) for number in range(len(counts))]
    for number, (out, count) in enumerate(zip(outs, counts, strict=True)):
        out.mkdir()
        view = replace(coded.view, episodes=coded.view.episodes[:count])
        earlier = Earlier(out, [Output(folder=folder) for folder in outs[:number][-1:]])
        made.append(preprocess_view(view, coded.dataset, request_for(heldout_episodes=(10,)), out, earlier=earlier))
    (tmp_path / "fresh").mkdir()
    preprocess_view(coded.view, coded.dataset, request_for(heldout_episodes=(10,)), tmp_path / "fresh")
    assert [each.num_adopted for each in made] == [0, 3, 4, 7]
    for out in outs[2:]:
        same(out, tmp_path / "fresh")
        assert (out / "marks.json").read_bytes() == (tmp_path / "fresh/marks.json").read_bytes()


def test_workers_share_a_block(coded: CodedLake, tmp_path: Path) -> None:
    """Where blocks are few. What comes out is the same, and whoever comes later adopts the parts."""
    for name in ("shared", "later"):
        (tmp_path / name).mkdir()
    runner, shared = Runner(workers=3), tmp_path / "shared"
    request = request_for(heldout_episodes=(16,))
    preprocess_view(coded.view, coded.dataset, request, shared, runner=runner)
    pieces, blocks = (len(list((out / "blocks").iterdir())) for out in (shared, coded.out))
    assert pieces > blocks
    earlier = Earlier(tmp_path / "later", [Output(folder=shared)])
    later = preprocess_view(coded.view, coded.dataset, request, tmp_path / "later", runner=runner, earlier=earlier)
    assert later.num_adopted == len(coded.view.episodes)
    for name in ("shared", "later"):
        same(tmp_path / name, coded.out)


def files_of(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "changes", [{"sample_stride": 1}, {"images": "jpeg"}, {"inputs": {"image_size": 8}}, {"heldout_episodes": (10,)}]
)
def test_nothing_that_was_made_otherwise_is_adopted(
    coded: CodedLake, tmp_path: Path, changes: dict[str, object]
) -> None:
    """One episode, or the one that is held out, is in the first block."""
    earlier = Earlier(tmp_path, [Output(folder=coded.out)])
    made = preprocess_view(
        coded.view, coded.dataset, request_for(**({"heldout_episodes": (16,)} | changes)), tmp_path, earlier=earlier
    )
    assert made.num_adopted == 0


def test_files_that_no_table_names_are_swept(coded: CodedLake, tmp_path: Path) -> None:
    """A worker died over a block, another made it."""
    for table in ("samples.lance", "steps.lance"):
        (tmp_path / table / "data").mkdir(parents=True)
        (tmp_path / table / "data" / "left.lance").write_bytes(b"half")
    preprocess_view(coded.view, coded.dataset, request_for(heldout_episodes=(16,)), tmp_path)
    assert not list(tmp_path.rglob("left.lance"))
    same(tmp_path, coded.out)


def test_jpeg_says_how_near_it_comes(coded: CodedLake, tmp_path: Path) -> None:
    made = preprocess_view(coded.view, coded.dataset, request_for(heldout_episodes=(16,), images="jpeg"), tmp_path)
    told = json.loads((tmp_path / "card.json").read_text())["images"]
    assert told == made.images
    assert (told["tier"], told["quality"]) == ("jpeg", 95)
    read, exact = SampleTable(tmp_path), SampleTable(coded.out)
    tokens = TokenCount(tokens_per_view=1, state_tokens=1, action_horizon=2)
    ids = [np.arange(25)]
    found, expected = (table.batch(0, ids, tokens).images.astype(float) for table in (read, exact))
    error = ((found - expected) ** 2).mean(axis=(1, 2, 3))
    decibels = np.minimum(100, 10 * np.log10(255**2 / np.maximum(error, 1e-9)))
    np.testing.assert_allclose([told["psnr_mean_db"], told["psnr_min_db"]], [decibels.mean(), decibels.min()])
    assert told["psnr_min_db"] > 35


def test_marks_of_episodes_are_listed(coded: CodedLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stretch of three steps for still, every step within the band of a huge floor is still."""
    monkeypatch.setattr("data_lake.marks.STILL_FLOOR", 1e6)
    monkeypatch.setattr("data_lake.marks.STILL_S", 3 / 80)
    made = preprocess_view(coded.view, coded.dataset, request_for(), tmp_path)
    listed = json.loads((tmp_path / "marks.json").read_text())
    assert [(each["source_episode"], each["still"]) for each in listed] == [
        (10 + number, [[0, episode.length]]) for number, episode in enumerate(RECORDED) if episode.length >= 3
    ]
    assert made.marks["still_segments"] == len(listed) == 6


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
