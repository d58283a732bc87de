"""RLDS data sets: what their records hold comes back; what is damaged costs that episode and is named."""

import io
import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data_lake.decode import frames as decode
from data_lake.examine import Tally, examine
from data_lake.sources import open_source
from data_lake.sources.episode import Episode, Pictures
from data_lake.sources.rlds import RldsFolder
from data_lake.sources.tfrecords import example as features_of
from data_lake.sources.tfrecords import masked_crc32c, records
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.stored_videos import open_video
from errors import UserError
from tests.data_lake.recordings import TASKS
from tests.data_lake.rlds_recordings import (
    TEXT,
    bad,
    change_info,
    encoded,
    examined,
    example,
    features,
    image,
    one_shard,
    pixels,
    record,
    shard_path,
    tensor,
    three,
    write_rlds,
)
from tests.data_lake.seen import content, ingest

AT_10_HZ = ReadSpec(fps="10")


def episodes(root: Path, **read: Any) -> list[Episode]:
    return list(RldsFolder(root, ReadSpec(fps="10", **read)).episodes())


def frames(episode: Episode, view: str) -> list[np.ndarray]:
    found = episode.views[view]
    assert isinstance(found, Pictures)
    return list(found.frames())


def test_rows_views_and_words(tmp_path: Path) -> None:
    root = one_shard(tmp_path, three())
    source = open_source(root.parent, AT_10_HZ)
    assert (source.card.format, source.card.version, source.card.fps) == ("rlds", "1.0.0", 10.0)
    assert source.card.root == root and source.card.instruction_source == "steps/language_instruction"
    found = list(source.episodes())
    rows = found[1].rows
    assert rows is not None and found[1].instruction == TASKS[1]
    assert rows["observation.state"].to_pylist() == [[0.5 * row, 1, 1] for row in range(6)]
    assert rows["action"].to_pylist() == [[0.5 * row + 1, 2] for row in range(6)]
    assert rows["frame_index"].to_pylist() == list(range(6))
    assert {"next.reward", "language_embedding", "timestamp"}.isdisjoint(rows.column_names)
    wrist = frames(found[1], "wrist")
    assert all(np.array_equal(each, pixels(51, number)) for number, each in enumerate(wrist)) and len(wrist) == 6
    assert len(frames(found[1], "front")) == len(frames(found[1], "front")) == 6, "pictures can be read again"
    assert found[1].extra == {"split": "train", "file_path": "raw/1.npy", "has_wrist": True, "number": -1}


def test_what_the_recipe_names(tmp_path: Path) -> None:
    """D14: columns side by side, views under canonical names."""
    root = one_shard(tmp_path, three())
    read = {"state": ("reward", "observation/state"), "views": {"hand": "observation/wrist"}, "instruction": "=push"}
    source = RldsFolder(root, ReadSpec(fps="30000/1001", **read))
    assert source.card.fps == 30000 / 1001 and source.card.cameras == ("hand",)
    assert source.card.features["observation.state"].shape == (4,) and source.card.instruction_source == "=push"
    first = next(source.episodes())
    assert first.rows is not None and first.rows["observation.state"].to_pylist()[1] == [0, 0.5, 0, 1]
    assert set(first.rows["task"].to_pylist()) == {"push"} and list(first.views) == ["hand"]


@pytest.mark.parametrize("fps", [None, "", "fast", "0", "-5", "1/0", "nan", "inf"])
def test_the_rate_is_asked_for(fps: str | None, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        RldsFolder(one_shard(tmp_path, three()), ReadSpec(fps=fps))
    assert error.value.code == "LAKE-035" and "ingest.read.fps" in error.value.next_step


def test_words_are_each_rows_own(tmp_path: Path) -> None:
    """D11: the episode is told what its first step says; marks by request and empty texts are no words."""
    said = [b"done", b"lift", b"lift", b"done", b"drop", b""]
    root = one_shard(tmp_path, three(steps__language_instruction=said))
    found = episodes(root)[1]
    assert found.rows is not None and found.instruction == "done"
    assert found.rows["task"].to_pylist() == ["done", "lift", "lift", "done", "drop", ""]
    found = episodes(root, ignore_tasks=("done",))[1]
    assert found.rows is not None and found.instruction == "lift"
    assert found.rows["task"].to_pylist() == ["lift", "lift", "lift", "lift", "drop", ""]
    assert [item.code for item in found.findings] == ["LAKE-050", "LAKE-024"]


@pytest.mark.parametrize(("text", "code"), [(b"", "LAKE-024"), (b"x" * 5000, "LAKE-030"), (b"\xff", "LAKE-114")])
def test_words_that_are_none(text: bytes, code: str, tmp_path: Path) -> None:
    found = examined(one_shard(tmp_path, three(steps__language_instruction=[text] * 6)))
    assert code in {item.code for item in found[1].findings}
    assert all("meta/tasks" not in item.fix for item in found[1].findings)
    assert set(bad(found)) == ({1} if code != "LAKE-024" else set())


def test_a_view_that_an_episode_denies_is_absent(tmp_path: Path) -> None:
    """One picture stands in for all steps. Where the pictures change, they are believed and the flag is named."""
    black = encoded(np.zeros((16, 16, 3), np.uint8), "PNG")
    denied: dict[str, Any] = {"episode_metadata__has_wrist": np.array([0])}
    dummy = record(0, 4, steps__observation__wrist=[black] * 4, **denied)
    root = one_shard(tmp_path, [dummy, record(1, 6, **denied), record(2, 5, steps__observation__wrist=[black] * 5)])
    found = examined(root)
    assert [sorted(each.pictures) for each in found] == [["front"], ["front", "wrist"], ["front", "wrist"]]
    assert [[(item.code, item.camera) for item in each.findings] for each in found] == [[], [("LAKE-118", "wrist")], []]
    renamed = next(RldsFolder(root, ReadSpec(fps="10", views={"hand": "observation/wrist"})).episodes())
    assert renamed.views == {}, "the flag is that of the feature, whatever the view is called"


def test_depth_is_left_out_and_named(tmp_path: Path) -> None:
    depth = image((16, 16, 1), "uint16", "png")
    root = one_shard(tmp_path, three(), features({"depth": depth}))
    source = RldsFolder(root, AT_10_HZ)
    assert [(item.code, item.severity) for item in source.card.findings] == [("LAKE-115", "warning")]
    assert "steps/observation/depth" in source.card.findings[0].message and source.card.cameras == ("front", "wrist")


@pytest.mark.parametrize("path", ["success", "episode_metadata__success"])
def test_a_demonstration_that_failed(path: str, tmp_path: Path) -> None:
    declared = features()
    place = declared["featuresDict"]["features"]
    place = place if path == "success" else place["episode_metadata"]["featuresDict"]["features"]
    place["success"] = tensor(dtype="bool")
    records = [record(number, 4, **{path: np.array([number != 1])}) for number in range(3)]
    root = one_shard(tmp_path, records, declared)
    assert bad(examined(root)) == {1: {"LAKE-117"}}
    kept = episodes(root, only_success=False)
    assert [each.extra["success"] for each in kept] == [True, False, True] and not kept[1].findings


def test_splits_are_kept_apart_and_the_same_episode_in_two_is_seen(tmp_path: Path) -> None:
    root = write_rlds(tmp_path / "cart/1.0.0", {"train": [three()], "val": [three()[:1]]})
    found = examined(root)
    assert [each.episode.extra["split"] for each in found] == ["train", "train", "train", "val"]
    assert found[0].content_hash == found[3].content_hash
    tally = Tally()
    beside = [
        tally.repeats(each.episode.source_episode, each.recording, each.content_hash, each.digests) for each in found
    ]
    assert beside[:3] == [[], [], []] and [item.code for item in beside[3]] == ["LAKE-147"]


def test_one_record_is_in_memory_at_a_time(tmp_path: Path) -> None:
    size, count = 1_000_000, 12
    root = one_shard(tmp_path, [record(0, 2)], features(noise=TEXT))
    info = json.loads((root / "dataset_info.json").read_text())
    info["splits"][0]["shardLengths"] = [str(count)]
    change_info(root, splits=info["splits"])
    content = example(record(0, 2, steps__noise=[bytes(size)] * 2))
    length = len(content).to_bytes(8, "little")
    checks = [masked_crc32c(part).to_bytes(4, "little") for part in (length, content)]
    shard_path(root).write_bytes((length + checks[0] + content + checks[1]) * count)
    source = RldsFolder(root, AT_10_HZ)
    tracemalloc.start()
    kept = list(source.episodes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept) == count and peak < 4 * 2 * size, "twelve records are 24 MB"


def test_every_picture_of_bridge_is_read(shared_data: Path) -> None:
    """Cameras 0 to 2 are true although the flags of this excerpt deny all four; the fourth is black throughout."""
    source = RldsFolder(shared_data / "rlds-bridge-debug", ReadSpec(fps="5"))
    assert source.card.cameras == ("image_0", "image_1", "image_2", "image_3")
    assert [(item.code, item.severity) for item in source.card.findings] == [("LAKE-110", "warning")]
    found = list(examine(source, workers=2, tally=Tally()))
    assert len(found) == source.card.num_episodes == 25 and all(each.is_ok for each in found)
    assert {tuple(each.pictures) for each in found} == {("image_0", "image_1", "image_2")}
    assert {index.num_frames for each in found for _, index in each.pictures.values()} == {10}
    assert Counter(item.code for each in found for item in each.findings) == {"LAKE-118": 75}
    assert Counter(each.episode.instruction for each in found) == {
        "put cup from counter or drying rack into sink": 6,
        "flip pot upright which is in sink": 5,
        "turn lever vertical to front": 6,
        "put carrot on plate": 8,
    }


def test_bridge_in_the_lake_is_as_it_was(shared_data: Path, tmp_path: Path) -> None:
    """D20: decoded from the lake, every frame has the pixels of its JPEG, and no file was made for any."""
    source, root = shared_data / "rlds-bridge-debug/1.0.0", tmp_path / "bridge"
    done = ingest(source, root, IngestSpec(dataset="bridge", embodiment="widowx", read=ReadSpec(fps="5")), dims=(7, 7))
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == (25, 0, 250)
    assert sum(path.is_file() for path in root.rglob("*")) < 30, "of 750 pictures"
    (shard,) = source.glob("*.tfrecord*")
    held = [features_of(each.content or b"") for each in records(shard)]
    rows = content(root)["frames"]
    for path, column in (("steps/action", "action"), ("steps/observation/state", "observation_state")):
        assert np.array_equal(np.concatenate([each[path] for each in held]).reshape(-1, 7), rows[column])
    for entry, features_held in zip(done.view["episodes"], held, strict=True):
        assert sorted(entry["views"]) == ["image_0", "image_1", "image_2"] and entry["extra"]["split"] == "train"
        for view, span in entry["views"].items():
            jpegs = features_held[f"steps/observation/{view}"]
            expected = [np.asarray(Image.open(io.BytesIO(jpeg))) for jpeg in jpegs]
            place = (span["video_key"], span["chunk_index"], span["file_index"])
            with open_video(str(root / "videos.lance"), done.view["vector"]["videos"], *place) as file:
                shown = list(decode(file, from_s=0.0, to_s=span["to_s"], fps=5.0, wanted=range(10), where=view))
            assert all(np.array_equal(image, jpeg) for (_, image), jpeg in zip(shown, expected, strict=True))
