"""Blocks: runs of a view's episodes that are prepared together, known by what they hold and how it is prepared.

A block ends where the content hash of an episode says so. Views that share episodes therefore share blocks: after
an append or a removal only the blocks around it are others, and all else is adopted from earlier builds.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from data_lake.identity import canonical, dumps
from data_lake.request import Request
from data_lake.view import DatasetView, ViewEpisode

MEAN_EPISODES, MAX_EPISODES = 8, 32
MAX_BYTES = 512 << 20  # of decoded images
MAX_STEPS = 1 << 18  # of a block, and of a group: what a worker has in memory
MEAN_BLOCKS, MAX_BLOCKS = 16, 64  # of a group, whose statistics are kept
MEANT = ("colour_order", "image_orientation", "fps", "action_mode")  # of a view's meaning: what preparing depends on
LAYOUT = 1  # of what a block's files hold; another number, and none is adopted


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Episodes [first, first + len(episodes)) of the view. splits: of each, TRAIN or HELD_OUT."""

    key: str
    first: int
    episodes: tuple[ViewEpisode, ...]
    splits: tuple[int, ...]

    @property
    def num_steps(self) -> int:
        return sum(episode.length for episode in self.episodes)

    def part(self, start: int, stop: int, recipe: str) -> "Block":
        """Its episodes [start, stop), as a block of their own. recipe: `recipe_key` of the view."""
        return _block(recipe, self.first + start, self.episodes[start:stop], self.splits[start:stop])

    def cut(self, parts: int, recipe: str) -> "list[Block]":
        """It in `parts` at most, with about as many steps each."""
        ends = list(accumulate(episode.length for episode in self.episodes))
        stops = {bisect_left(ends, self.num_steps * part / parts) + 1 for part in range(1, parts + 1)}
        return [self.part(*each, recipe) for each in pairwise([0, *sorted(stops)])]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Consecutive blocks, as many as one piece of statistics is about."""

    key: str
    blocks: tuple[Block, ...]

    @property
    def splits(self) -> list[int]:
        return [split for block in self.blocks for split in block.splits]

    @property
    def lengths(self) -> list[int]:
        return [episode.length for block in self.blocks for episode in block.episodes]


def recipe_of(view: DatasetView, request: Request) -> dict[str, Any]:
    """What decides, beside an episode's content, what is made of it."""
    return {
        "layout": LAYOUT,
        "meaning": {name: view.meaning[name] for name in MEANT},
        "sample_stride": request.sample_stride,
        "images": request.images,
        "cameras": [[each.slot, each.camera] for each in request.cameras],
        "inputs": request.inputs,
        "embodiment": request.layout,
        "functions": request.functions,
    }


def recipe_key(view: DatasetView, request: Request) -> str:
    return _key(recipe_of(view, request))


def blocks_of(view: DatasetView, request: Request, splits: Sequence[int]) -> list[Block]:
    """The view in blocks, in its order."""
    recipe = recipe_key(view, request)
    runs = ((places.start, places.stop) for places in _runs(view, request))
    return [_block(recipe, start, view.episodes[start:stop], splits[start:stop]) for start, stop in runs]


def _block(recipe: str, first: int, episodes: Sequence[ViewEpisode], splits: Sequence[int]) -> Block:
    told = [[episode.content_hash, split] for episode, split in zip(episodes, splits, strict=True)]
    return Block(key=_key(recipe, told), first=first, episodes=tuple(episodes), splits=tuple(splits))


def groups_of(blocks: Sequence[Block]) -> list[Group]:
    """The blocks in groups, in their order."""
    groups: list[Group] = []
    held: list[Block] = []
    for block in blocks:
        held.append(block)
        full = len(held) == MAX_BLOCKS or sum(each.num_steps for each in held) >= MAX_STEPS
        if full or _ends(block.key, MEAN_BLOCKS):
            groups.append(_group(held))
            held = []
    return [*groups, _group(held)] if held else groups


def _group(blocks: Sequence[Block]) -> Group:
    return Group(key=_key("group", [block.key for block in blocks]), blocks=tuple(blocks))


def _runs(view: DatasetView, request: Request) -> Iterator[range]:
    """Places of the episodes of each block."""
    image_bytes = request.inputs["image_size"] ** 2 * 3 * len(request.inputs["views"])
    start, held, steps = 0, 0, 0
    for number, episode in enumerate(view.episodes):
        held += -(-episode.length // request.sample_stride) * image_bytes
        steps += episode.length
        full = number + 1 - start == MAX_EPISODES or held >= MAX_BYTES or steps >= MAX_STEPS
        if full or _ends(episode.content_hash, MEAN_EPISODES) or number + 1 == len(view.episodes):
            yield range(start, number + 1)
            start, held, steps = number + 1, 0, 0


def _ends(digest: str, mean: int) -> bool:
    return int(digest[-8:], 16) % mean == 0


def _key(*parts: Any) -> str:
    return hashlib.sha256(dumps(canonical(parts)).encode()).hexdigest()[:32]
