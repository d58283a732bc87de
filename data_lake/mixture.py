"""Several tables of samples read as one: ids of a component follow those of the one before, batches are woven together.

{slot}/mixture.json names the components by their uris in the lake; their samples stay where they are.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.files import LakePath, read_bytes
from data_lake.packing import TokenCount
from data_lake.samples import Batch, SampleTable, running
from errors import UserError

MIXTURE = "mixture.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """name: for people. uri: what preprocessing made, relative to the lake. token_map: the mixture's id of each of the
    component's token ids; None where they are the same."""

    name: str
    uri: str
    token_map: list[int] | None


def write_mixture(folder: Path, components: Sequence[Component], card: dict[str, Any]) -> None:
    """What `open_samples` reads, in `folder` = {lake}/mix/{fingerprint}/attempts/{n}."""
    (folder / MIXTURE).write_text(json.dumps([asdict(each) for each in components], indent=1) + "\n")
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n")


def sample_folders(folder: LakePath) -> list[LakePath]:
    """Where the samples lie: of each component of a mixture, or `folder` itself.

    Raises UserError PACK-012 naming a component that is gone.
    """
    found = [folder.parents[3] / each.uri for each in _components(folder)] or [folder]
    if gone := [path for path in found if not path.is_dir()]:
        raise UserError(
            "PACK-012",
            "the samples of a component of the mixture are gone",
            where=str(gone[0]),
            next_step='restore them, or the same command with --rebuild preprocess:NAME --why "files lost"',
        )
    return found


def open_samples(folder: LakePath, threads: int = 0) -> "SampleTable | MixedSamples":
    """The samples that preprocessing wrote to `folder`, or of the mixture there; threads as `SampleTable`."""
    return MixedSamples(folder, threads) if (folder / MIXTURE).exists() else SampleTable(folder, threads)


def _components(folder: LakePath) -> list[Component]:
    path = folder / MIXTURE
    return [Component(**each) for each in json.loads(read_bytes(path))] if path.exists() else []


class MixedSamples:
    """Read like a `SampleTable`: ids are counted over all components, dimensions padded to the widest robot's."""

    def __init__(self, folder: LakePath, threads: int = 0) -> None:
        self.folder = folder
        self.card: dict[str, Any] = json.loads(read_bytes(folder / "card.json"))
        self.tables = [SampleTable(path, threads) for path in sample_folders(folder)]
        maps = [each.token_map for each in _components(folder)]
        self._token_maps = [None if each is None else np.array(each, np.int32) for each in maps]
        self._ends: np.ndarray | None = None

    @property
    def views(self) -> list[str]:
        return list(self.card["inputs"]["views"])

    @property
    def ends(self) -> np.ndarray:
        """Where the sample ids of each component end (M,)."""
        if self._ends is None:
            self._ends = np.cumsum([table.num_samples for table in self.tables])
        return self._ends

    @property
    def num_samples(self) -> int:
        return int(self.ends[-1])

    def column(self, name: str) -> np.ndarray:
        """A whole numeric column of the samples (N,). Numbers of episodes and tasks go on from component to component;
        `task_index` is a place in the card's instructions."""
        columns = [table.column(name) for table in self.tables]
        if name == "task_index":
            sizes = [len(table.card["instructions"]) for table in self.tables]
        elif name == "episode_index":
            sizes = [int(column.max()) + 1 for column in columns]
        else:
            return np.concatenate(columns)
        firsts = np.cumsum(sizes) - sizes
        return np.concatenate([column + first for column, first in zip(columns, firsts, strict=True)])

    def ids(self, split: int) -> np.ndarray:
        """Sample ids (int64) of a split: 0 training, 1 held out."""
        return np.flatnonzero(self.column("split") == split)

    def batch(self, step: int, rows: Sequence[np.ndarray], tokens: TokenCount) -> Batch:
        """The samples of these rows (ids of each), in this order. `tokens` says how long prefix and suffix are."""
        ids_N = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
        component_N = np.searchsorted(self.ends, ids_N, side="right").astype(np.int32)
        parts: list[tuple[np.ndarray, Batch]] = []
        for component in np.unique(component_N):
            place_n = np.flatnonzero(component_N == component)
            own = ids_N[place_n] - (self.ends[component - 1] if component else 0)
            part = self.tables[component].batch(step, [own], tokens)
            parts.append((place_n, _translated(part, self._token_maps[component])))
        return self._woven(step, rows, ids_N, component_N, parts, tokens)

    def _woven(
        self,
        step: int,
        rows: Sequence[np.ndarray],
        ids_N: np.ndarray,
        component_N: np.ndarray,
        parts: Sequence[tuple[np.ndarray, Batch]],
        tokens: TokenCount,
    ) -> Batch:
        """The parts, each at its places among the N samples."""
        count, size, horizon = len(ids_N), self.card["inputs"]["image_size"], tokens.action_horizon
        proprio = np.zeros((count, self.card["proprio_dim"]), np.float32)
        actions = np.zeros((count, horizon, self.card["action_dim"]), np.float32)
        proprio_mask, action_dim_mask = np.zeros(proprio.shape, bool), np.zeros((count, actions.shape[-1]), bool)
        action_mask = np.zeros((count, horizon), bool)
        text_lengths, prefix_lengths, num_views = (np.zeros(count, np.int32) for _ in range(3))
        for place_n, part in parts:
            proprio[place_n, : part.proprio.shape[1]] = part.proprio
            actions[place_n, :, : part.actions.shape[2]] = part.actions
            proprio_mask[place_n, : part.proprio.shape[1]] = part.proprio_mask
            action_dim_mask[place_n, : part.actions.shape[2]] = part.action_dim_mask
            action_mask[place_n] = part.action_mask
            text_lengths[place_n], prefix_lengths[place_n] = part.text_lengths, part.prefix_lengths
            num_views[place_n] = np.bincount(part.image_sample, minlength=len(place_n))
        images = np.empty((num_views.sum(), size, size, 3), np.uint8)
        image_view = np.empty(len(images), np.int32)
        text_tokens = np.empty(text_lengths.sum(), np.int32)
        for place_n, part in parts:
            seen = _spread(num_views, place_n)
            images[seen], image_view[seen] = part.images, part.image_view
            text_tokens[_spread(text_lengths, place_n)] = part.text_tokens
        return Batch(
            step=step,
            sample_ids=ids_N,
            row_of_sample=np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows]),
            images=images,
            image_sample=np.repeat(np.arange(count, dtype=np.int32), num_views),
            image_view=image_view,
            text_tokens=text_tokens,
            text_lengths=text_lengths,
            proprio=proprio,
            actions=actions,
            action_mask=action_mask,
            prefix_lengths=prefix_lengths,
            cu_prefix=running(prefix_lengths),
            cu_suffix=running(np.full(count, horizon)),
            component=component_N,
            proprio_mask=proprio_mask,
            action_dim_mask=action_dim_mask,
        )


def _translated(part: Batch, token_map: np.ndarray | None) -> Batch:
    return part if token_map is None else replace(part, text_tokens=token_map[part.text_tokens])


def _spread(lengths_N: np.ndarray, place_n: np.ndarray) -> np.ndarray:
    """Where the items of the samples at `place_n`, lengths_N[i] of sample i, are among those of all samples."""
    starts_n, lengths_n = (np.cumsum(lengths_N) - lengths_N)[place_n], lengths_N[place_n]
    firsts_n = np.cumsum(lengths_n) - lengths_n
    return np.arange(lengths_n.sum()) + np.repeat(starts_n - firsts_n, lengths_n)
