"""Turn the episodes of a lake view into samples: images as the policy sees them, proprio, text tokens, actions.

Block by block, wherever a worker is: what an earlier build of the stage holds of a block is adopted, the rest is made.
The functions of the model come by dotted name, so training, serving and this agree. Rows are in the view's order.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
from lance.fragment import FragmentMetadata

from data_lake.blocks import Block, Group, blocks_of, groups_of, recipe_key
from data_lake.card import make_card
from data_lake.earlier import Earlier
from data_lake.files import LakePath, replace
from data_lake.fragments import Joining, commit, data_file, placed_part, samples_schema, write_part
from data_lake.learnt import (
    group_json,
    is_small,
    learnt_of,
    read_summaries,
    statistics_json,
    summary_file,
)
from data_lake.objects import TOGETHER
from data_lake.placing import Placing
from data_lake.prepare import SAMPLES, STEPS, Workshop, block_json, description, marks_in, read_description
from data_lake.request import HELD_OUT, TRAIN, Request, check_request
from data_lake.runners import Runner
from data_lake.sealed import fields_of
from data_lake.statistics import constant_dimensions
from data_lake.steps import steps_of_rows, steps_schema
from data_lake.tiers import VIDEO, Fidelity, told
from data_lake.video_tier import VideoPlaces
from data_lake.view import DatasetView

Report = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preprocessed:
    """What was made. num_adopted: episodes whose images an earlier build had. marks: black images, rows that are not
    finite, stretches without motion, leaps, dimensions of actions that never change. images: the card's entry."""

    num_samples: int
    num_heldout: int
    num_views: int
    num_steps: int
    num_adopted: int
    marks: dict[str, int]
    images: dict[str, Any]


def preprocess_view(
    view: DatasetView,
    dataset: LakePath,
    request: Request,
    out: Path,
    *,
    runner: Runner | None = None,
    earlier: Earlier | None = None,
    report: Report = lambda _done, _total: None,
) -> Preprocessed:
    """Write samples.lance, steps.lance, marks.json and card.json to `out` from the data set's tables at `dataset`.

    Memory: in each worker the steps of a block and `request.image_bytes` of images, here what is told of blocks.
    earlier: outputs to adopt from. report: called with (episodes done, episodes). Raises UserError PREP-001 … -006
    when the request does not fit the data, DECODE-… when a video does not hold what its episode needs.
    """
    check_request(view, request)
    splits = [HELD_OUT if e.source_episode in request.heldout_episodes else TRAIN for e in view.episodes]
    video = VideoPlaces(view, dataset, request, out) if request.images == VIDEO else None
    build = _Build(view, dataset, request, out, runner or Runner(), earlier or Earlier(out))
    blocks = blocks_of(view, request, splits)
    pieces, num_adopted = build.prepare(blocks, report)
    tellings = [read_description(out, piece.key) for piece in pieces]
    for each in tellings:
        build.earlier.made(each.get("sha256", {}))
    build.commit_steps(tellings)
    stats = build.statistics(groups_of(blocks))
    fidelity = Fidelity().merged([Fidelity(**each["fidelity"]) for each in tellings])
    card = make_card(view, request, stats, splits, out) | {"images": told(request.images, fidelity)}
    card |= {"video": video.card} if video else {}
    build.commit_samples(pieces, tellings, card, video)
    marks = _written_marks(out, pieces, tellings) | {"constant_action_dims": len(constant_dimensions(stats["action"]))}
    if video:
        del marks["black_images"]  # nobody looked at the pictures
    replace(out / "card.json", json.dumps(card | {"marks": marks}, indent=1).encode() + b"\n")
    build.sweep(tellings)
    heldout = [e for e, split in zip(view.episodes, splits, strict=True) if split == HELD_OUT]
    return Preprocessed(
        num_samples=sum(each["num_samples"] for each in tellings),
        num_heldout=sum(-(-episode.length // request.sample_stride) for episode in heldout),
        num_views=sum(each["num_views"] for each in tellings),
        num_steps=sum(episode.length for episode in view.episodes),
        num_adopted=num_adopted,
        marks=marks,
        images=card["images"],
    )


class _Build:
    """One output in the making: what is adopted, what workers are asked for, and the tables of their files."""

    def __init__(
        self, view: DatasetView, dataset: LakePath, request: Request, out: Path, runner: Runner, earlier: Earlier
    ) -> None:
        self.request, self.out, self.runner, self.earlier = request, out, runner, earlier
        self.workshop = Workshop.of(view, dataset, request, out).dumps()
        self.recipe = recipe_key(view, request)
        self._is_adopted: dict[str, bool] = {}

    def prepare(self, blocks: Sequence[Block], report: Report) -> tuple[list[Block], int]:
        """See that the files of all blocks are there; returns the blocks, or the pieces of them that have files of
        their own, and how many episodes' were adopted."""
        total = sum(len(block.episodes) for block in blocks)
        with ThreadPoolExecutor(TOGETHER) as pool:  # on an object store each of them waits for a few answers
            list(pool.map(self._adopted, {block.key for block in blocks}))
        pieces = [piece for block in blocks for piece in self._pieces(block)]
        share = sum(piece.num_steps for piece in pieces if not self._adopted(piece.key)) / self.runner.workers
        pieces = [part for piece in pieces for part in self._parts(piece, share)]
        missing = {piece.key: piece for piece in pieces if not self._adopted(piece.key)}
        done = num_adopted = sum(len(piece.episodes) for piece in pieces if piece.key not in missing)
        report(done, total)
        units = [block_json(block) for block in missing.values()]
        finished = self.runner.run("data_lake.prepare:prepare_block", self.workshop, units)
        for block, _ in zip(missing.values(), finished, strict=True):
            done += len(block.episodes)
            report(min(done, total), total)
        return pieces, num_adopted

    def _pieces(self, block: Block) -> list[Block]:
        """A block as far as earlier builds had it, from its beginning, and the rest of it. The last block of a view
        ends where the view does: after an append it is the beginning of a longer one."""
        pieces: list[Block] = []
        held, stops = 0, len(block.episodes)
        while held < stops:
            shorter = (block.part(held, stop, self.recipe) for stop in range(stops, held, -1))
            found = next((piece for piece in shorter if self._adopted(piece.key)), None)
            pieces.append(found or block.part(held, stops, self.recipe))
            held += len(pieces[-1].episodes)
        return pieces

    def _parts(self, piece: Block, share: float) -> list[Block]:
        """What is missing and has more steps than a worker's `share` of all, in parts: few new episodes are often of
        one block, and the other workers would wait for it."""
        if self._adopted(piece.key) or piece.num_steps <= share:
            return [piece]
        return piece.cut(math.ceil(piece.num_steps / share), self.recipe)

    def _adopted(self, key: str) -> bool:
        """Whether an earlier build had the block's files, which are here then."""
        if key not in self._is_adopted:
            self._is_adopted[key] = self._adopt(key)
        return self._is_adopted[key]

    def _adopt(self, key: str) -> bool:
        content = self.earlier.read(description(key))
        telling = None if content is None else fields_of(content)
        if telling is None:
            return False
        steps, samples = (f"{table}/data/{name}" for table, name in _files(telling))
        told = telling.get("sha256", {})
        return self.earlier.take([steps, samples, description(key)], unread=[samples], told=told)

    def commit_steps(self, tellings: Sequence[dict[str, Any]]) -> None:
        """steps.lance of the blocks' parts, in the order of the view."""
        parts = [FragmentMetadata.from_json(json.dumps(each["steps"])) for each in tellings]
        schema = steps_schema(tellings[0]["action_dim"], tellings[0]["proprio_dim"])
        commit(self.out / STEPS, schema, parts)

    def statistics(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Of training episodes: exact quantiles while rows are few, else those of merged sketches."""
        units, first_step = [], 0
        for group in groups:
            if not self.earlier.take([summary_file(group.key)]):
                units.append(group_json(group, first_step))
            first_step += sum(group.lengths)
        for _ in self.runner.run("data_lake.learnt:summarise_group", self.workshop, units):
            pass
        summaries = read_summaries(self.out, groups)
        rows = None
        if is_small(summaries):
            lengths = [length for group in groups for length in group.lengths]
            splits = [split for group in groups for split in group.splits]
            rows = learnt_of(steps_of_rows(str(self.out / STEPS), 0, lengths), splits, self.request)
        return statistics_json(summaries, rows, self.request.layout)

    def commit_samples(
        self,
        pieces: Sequence[Block],
        tellings: Iterable[dict[str, Any]],
        card: dict[str, Any],
        video: VideoPlaces | None,
    ) -> None:
        """samples.lance: each piece's content beside its places in this view."""
        schema = samples_schema(self.request.inputs["views"], card["proprio_dim"], self.request.images)
        placed, joining = placed_part(schema), Joining(schema)
        placing = Placing(self.request, card, self.out, placed, video)
        fragments = []
        for piece, each in zip(pieces, tellings, strict=True):
            part = write_part([placing.batch(piece)], placed, self.out / SAMPLES)
            fragments.append(joining.fragment(each["samples"], part))
        commit(self.out / SAMPLES, schema, fragments)

    def sweep(self, tellings: Iterable[dict[str, Any]]) -> None:
        """Remove files of workers that died, or that were second, which no table names."""
        named = {(table, name) for each in tellings for table, name in _files(each)}
        for table in (SAMPLES, STEPS):
            fragments = lance.dataset(str(self.out / table)).get_fragments()
            named |= {(table, file.path) for fragment in fragments for file in fragment.data_files()}
            for path in (self.out / table / "data").iterdir():
                if (table, path.name) not in named:
                    path.unlink()


def _files(telling: dict[str, Any]) -> list[tuple[str, str]]:
    """(table, name) of a block's files."""
    return [(STEPS, data_file(telling["steps"])), (SAMPLES, data_file(telling["samples"]))]


def _written_marks(out: Path, pieces: Sequence[Block], tellings: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Write marks.json, the marked episodes with their marks; returns the counts of all."""
    found = [
        (episode, marks)
        for piece, each in zip(pieces, tellings, strict=True)
        for episode, marks in zip(piece.episodes, marks_in(each), strict=True)
        if marks.any
    ]
    listed = [
        {"episode_index": episode.episode_index, "source_episode": episode.source_episode, **marks.as_json()}
        for episode, marks in found
    ]
    replace(out / "marks.json", json.dumps(listed, indent=1).encode() + b"\n")
    return {
        "black_images": sum(marks.black_images for _, marks in found),
        "not_finite_rows": sum(marks.not_finite_rows for _, marks in found),
        "still_segments": sum(len(marks.still) for _, marks in found),
        "jumps": sum(len(marks.jumps) for _, marks in found),
    }
