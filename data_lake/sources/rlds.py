"""RLDS data sets as TensorFlow Datasets writes them (Open X-Embodiment, Bridge, DROID), without TensorFlow.

Layout: https://github.com/google-research/rlds and https://www.tensorflow.org/datasets/external_tfrecord.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import fixed
from data_lake.sources.episode import (
    NOTHING,
    RATE,
    Episode,
    Feature,
    Part,
    Pictures,
    SourceCard,
    ask_together,
    asked,
    declared_rate,
)
from data_lake.sources.files import Unreadable, read_meta_json, well_formed
from data_lake.sources.instructions import instruct_rows
from data_lake.sources.rlds_features import Features, Leaf, choose, contents, leaves_of, matrix, single, texts
from data_lake.sources.rlds_shards import Shard, is_version, list_shards, version_folder, versions_below
from data_lake.sources.stills import decoded
from data_lake.sources.tfrecords import Record, content_at, example, records
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from errors import UserError


class RldsFolder:
    """A version folder (dataset_info.json, features.json, TFRecord shards), or the folder around the only one.

    Steps become rows, one to one. RLDS leaves undefined what the action of the last step is: some sets repeat one or
    write zeros there, others have a true one, and nothing in the files tells. It is kept as it is.
    Rewards, discounts, `is_first` and its like and precomputed embeddings (`language_embedding`) are not ingested.
    Pictures are upright RGB: TFDS encodes arrays as an image viewer shows them, and so they are decoded.
    An episode is named by its place in dataset_info.json, as RLDS gives it no number.
    """

    TAKES: ClassVar[frozenset[str]] = frozenset({"fps", "state", "action", "views", "instruction", "only_success"})

    def __init__(self, path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS) -> None:
        root = version_folder(path)
        info = read_meta_json(root / "dataset_info.json")
        if info.get("fileFormat", "tfrecord") != "tfrecord":
            raise UserError(
                "LAKE-002",
                f"its files are {info['fileFormat']!r}; of TFDS's formats only tfrecord is understood",
                where=str(root),
                done="nothing was read",
                next_step="write the data set with file_format tfrecord",
            )
        features = read_meta_json(root / "features.json")
        with well_formed(root / "features.json"):
            self._leaves = leaves_of(features)
        with well_formed(root / "dataset_info.json"):
            self._listing = list_shards(root, info)
        self._described = json.dumps(features, sort_keys=True)
        ask_together(lambda: choose(root, self._leaves, read), lambda: _rate(root, read))
        self._chosen = choose(root, self._leaves, read)
        self._read = read
        instruction = self._chosen.instruction
        self._card = SourceCard(
            root=root,
            format="rlds",
            version=str(info.get("version", "")),
            fps=_rate(root, read),
            robot="",
            features={"observation.state": _feature(self._chosen.state), "action": _feature(self._chosen.action)},
            cameras=tuple(self._chosen.views),
            num_episodes=sum(shard.num_episodes for shard in self._listing.shards),
            instruction_source=instruction.path if isinstance(instruction, Leaf) else f"={instruction}",
            by_format={"colour_order": "rgb", "image_orientation": "upright"},
            splits=self._listing.splits,
            findings=(
                *self._listing.findings,
                *(finding("LAKE-115", leaf.path, file="features.json") for leaf in self._chosen.depth),
            ),
        )

    @property
    def card(self) -> SourceCard:
        return self._card

    @staticmethod
    def recognises(path: Path) -> bool:
        return is_version(path) or bool(versions_below(path))

    @property
    def parts(self) -> Sequence[Part]:
        said = ((shard.path, f"{shard.split} {shard.first} {shard.num_episodes}") for shard in self._listing.shards)
        return [Part(files=(path,), said=words) for path, words in said]

    @property
    def shared(self) -> Mapping[str, str]:
        return {"features.json": self._described}

    def episodes(self, left_out: Mapping[int, int] = NOTHING) -> Iterator[Episode]:
        surplus = count(self._listing.num_listed)
        for place, shard in enumerate(self._listing.shards):
            if place not in left_out:
                yield from (replace(episode, part=place) for episode in self._of_shard(shard, surplus))

    def _of_shard(self, shard: Shard, surplus: Iterator[int]) -> Iterator[Episode]:
        """surplus: numbers for episodes that no shard lists; those depend on what the shards before hold."""
        found, broken = 0, None
        try:
            for record in records(shard.path):
                found += 1
                is_listed = found <= shard.num_episodes
                number = shard.first + found - 1 if is_listed else next(surplus)
                episode = self._episode(number, shard, record, is_listed=is_listed)
                yield replace(episode, lasting=is_listed, counted=not is_listed)
        except Unreadable as error:
            broken = error
        yield from self._missing(shard, found, broken, surplus)

    def _missing(
        self, shard: Shard, found: int, broken: Unreadable | None, surplus: Iterator[int]
    ) -> Iterator[Episode]:
        """What a shard lists beyond the `found` records; what is broken behind the listed ones counts as one more."""
        numbers = list(range(shard.first + found, shard.first + shard.num_episodes))
        why = broken or Unreadable("LAKE-112", f"it holds {found} records, {shard.num_episodes} are listed")
        file = self.card.relative(shard.path)
        for number in numbers or ([next(surplus)] if broken else []):
            odd = finding(why.code, why.detail, episode=number, file=file)
            extra = {"split": shard.split}
            episode = Episode(source_episode=number, rows=None, file=file, extra=extra, findings=(odd,))
            yield replace(episode, lasting=bool(numbers), counted=not numbers)

    def _episode(self, number: int, shard: Shard, record: Record, *, is_listed: bool) -> Episode:
        file = self.card.relative(shard.path)
        findings = [] if is_listed else [finding("LAKE-113", episode=number, file=file)]
        rows, instruction, views, extra = None, "", {}, {}
        try:
            if record.content is None:
                raise Unreadable("LAKE-111", f"at byte {record.offset:,}")
            features = example(record.content)
            extra = self._said(features)
            rows, instruction, odd = self._rows(features, number)
            views, doubtful = self._views(features, shard.path, record.offset)
            findings += odd
            findings += [finding("LAKE-118", episode=number, camera=name, file=file) for name in doubtful]
            if self._read.only_success and self._failed(features):
                findings.append(finding("LAKE-117", episode=number, file=file))
        except Unreadable as error:
            findings.append(finding(error.code, error.detail, episode=number, file=file))
        return Episode(
            source_episode=number,
            rows=rows,
            instruction=instruction,
            views=views,
            file=file,
            length=None if rows is None else rows.num_rows,
            extra={**extra, "split": shard.split},
            findings=tuple(findings),
        )

    def _rows(self, features: Features, number: int) -> tuple[pa.Table, str, list[Finding]]:
        """Rows of one record, the first one's instruction, and what is odd about the words. Raises Unreadable."""
        chosen = self._chosen
        both_TD = matrix(features, (*chosen.state, *chosen.action))
        num_steps, num_state = len(both_TD), sum(leaf.width for leaf in chosen.state)
        words = chosen.instruction
        said = [words] * num_steps if isinstance(words, str) else texts(features, words, num_steps)
        rows = pa.table(
            {
                "observation.state": fixed(both_TD[:, :num_state]),
                "action": fixed(both_TD[:, num_state:]),
                "frame_index": np.arange(num_steps),
                "episode_index": np.full(num_steps, number),
            }
        )
        return instruct_rows(rows, said, self._read.ignore_tasks, number)

    def _views(self, features: Features, path: Path, offset: int) -> tuple[dict[str, Pictures], list[str]]:
        """The cameras that the episode has, and the names of those that it denies to have although they show something.

        Where `episode_metadata/has_<camera>` is false, one picture stands in for all steps; that is no view. Bridge's
        own excerpts carry false flags beside true pictures, so a camera whose picture changes is believed.
        """
        views, doubtful = {}, []
        for name, leaf in self._chosen.views.items():
            flag = self._leaves.get(f"episode_metadata/has_{leaf.name}")
            if flag is not None and single(features, flag) is False:
                if len(set(contents(features, leaf))) < 2:
                    continue
                doubtful.append(name)
            views[name] = Pictures(path=path, frames=partial(_pictures, path, offset, leaf))
        return views, doubtful

    def _said(self, features: Features) -> dict[str, Any]:
        """What a record says once of its whole episode."""
        once = [leaf for leaf in self._leaves.values() if not leaf.is_per_step and leaf.kind in ("numbers", "words")]
        said = {leaf.name: single(features, leaf) for leaf in once if leaf.width == 1}
        return {name: value for name, value in said.items() if value is not None}

    def _failed(self, features: Features) -> bool:
        flag = self._chosen.success
        return flag is not None and single(features, flag) in (0, False)


def _pictures(path: Path, offset: int, leaf: Leaf) -> Iterator[np.ndarray]:
    """The frames of one camera, decoded from the record in its file: records are not kept in memory."""
    encoded = contents(example(content_at(path, offset)), leaf)
    return (decoded(content, f"frame {number}") for number, content in enumerate(encoded))


def _feature(leaves: tuple[Leaf, ...]) -> Feature:
    return Feature(dtype="float32", shape=(sum(leaf.width for leaf in leaves),))


def _rate(root: Path, read: ReadSpec) -> float:
    """Of the steps. Raises UserError LAKE-035: RLDS has no field for it."""
    rate = declared_rate(root, read)
    if rate is None:
        raise asked(root, "fps", "how many steps a second it has", RATE, 5)
    return float(rate)
