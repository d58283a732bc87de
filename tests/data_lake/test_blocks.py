"""Blocks follow from what episodes hold: views that share episodes share all blocks but those around a difference."""

from dataclasses import replace
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.blocks import MAX_EPISODES, MAX_STEPS, Block, blocks_of, groups_of
from data_lake.view import DatasetView, ViewEpisode
from tests.data_lake.lake_fixture import request_for

MEANING = {"colour_order": "rgb", "image_orientation": "upright", "fps": 20.0, "action_mode": "absolute"}


def view_of(numbers: list[int], length: int = 10, **meaning: object) -> DatasetView:
    """Episodes whose content is their number."""
    episodes = tuple(
        ViewEpisode(
            episode_index=place, source_episode=number, length=length, from_index=place * length, instruction="go",
            content_hash=sha256(str(number).encode()).hexdigest(), spans=(),
        )
        for place, number in enumerate(numbers)
    )  # fmt: skip
    return DatasetView(dataset="d", vector={}, embodiment="e", meaning=MEANING | meaning, episodes=episodes)


def blocks(numbers: list[int], **request: object) -> list[Block]:
    return blocks_of(view_of(numbers), request_for(**request), [0] * len(numbers))


def keys(numbers: list[int], **request: object) -> set[str]:
    return {block.key for block in blocks(numbers, **request)}


@given(st.lists(st.integers(0, 500), min_size=1, max_size=300))
def test_blocks_and_groups_hold_every_episode_once_in_order(numbers: list[int]) -> None:
    found = blocks(numbers)
    assert [episode.source_episode for block in found for episode in block.episodes] == numbers
    assert [block.first for block in found] == [
        sum(len(each.episodes) for each in found[:place]) for place in range(len(found))
    ]
    assert max(len(block.episodes) for block in found) <= MAX_EPISODES
    assert [block for group in groups_of(found) for block in group.blocks] == found
    assert sum(len(group.lengths) for group in groups_of(found)) == len(numbers)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 50))
def test_a_block_is_cut_into_parts_of_like_length(lengths: list[int], num_parts: int) -> None:
    view = view_of(list(range(len(lengths))))
    episodes = tuple(replace(episode, length=length) for episode, length in zip(view.episodes, lengths, strict=True))
    block = Block(key="", first=7, episodes=episodes, splits=(0,) * len(lengths))
    parts = block.cut(num_parts, "recipe")
    assert [episode for part in parts for episode in part.episodes] == list(episodes)
    assert [part.first for part in parts] == [7 + part.episodes[0].episode_index for part in parts]
    assert len(parts) <= num_parts
    assert max(part.num_steps for part in parts) < sum(lengths) / num_parts + max(lengths)


@given(removed=st.integers(0, 999))
@settings(max_examples=30)
def test_a_removal_changes_few_blocks(removed: int) -> None:
    everything = list(range(1000))
    before, after = keys(everything), keys([number for number in everything if number != removed])
    assert len(after - before) <= 4


def test_an_append_changes_the_last_block_only() -> None:
    before, after = blocks(list(range(1000))), blocks(list(range(1010)))
    assert [block.key for block in after[: len(before) - 1]] == [block.key for block in before[:-1]]
    assert sum(len(block.episodes) for block in after[len(before) - 1 :]) <= 10 + MAX_EPISODES
    assert len(groups_of(after)) < len(after) / 4


def test_places_and_names_are_no_content() -> None:
    """The same episodes behind others, from another data set and under other numbers."""
    view = view_of(list(range(50)))
    moved = replace(
        view, dataset="other", episodes=tuple(replace(e, episode_index=e.episode_index + 7) for e in view.episodes)
    )
    splits = [0] * 50
    assert [b.key for b in blocks_of(view, request_for(), splits)] == [
        b.key for b in blocks_of(moved, request_for(), splits)
    ]


def test_whatever_decides_what_is_made_is_in_the_key() -> None:
    numbers = list(range(30))
    plain = keys(numbers)
    assert not plain & keys(numbers, sample_stride=1)
    assert not plain & keys(numbers, images="jpeg")
    assert not plain & keys(numbers, inputs={"image_size": 8})
    assert not plain & keys(numbers, layout={"delta_mask": [True] * 4})
    assert not plain & {b.key for b in blocks_of(view_of(numbers, colour_order="bgr"), request_for(), [0] * 30)}
    assert plain == keys(numbers, image_bytes=1)
    held = {block.key for block in blocks_of(view_of(numbers), request_for(), [1] + [0] * 29)}
    assert len(held - plain) == 1


def test_a_group_holds_no_more_steps_than_a_worker_can() -> None:
    found = groups_of(blocks_of(view_of(list(range(400)), length=5_000), request_for(), [0] * 400))
    assert max(sum(group.lengths) for group in found) < 2 * MAX_STEPS


def test_long_episodes_are_alone() -> None:
    """512 MiB of images are enough for a block."""
    view = view_of(list(range(5)), length=200_000)
    request = request_for(sample_stride=1, inputs={"image_size": 64})
    assert [len(block.episodes) for block in blocks_of(view, request, [0] * 5)] == [1] * 5
