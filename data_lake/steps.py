"""Control steps of episodes: read at the view's version by their place in frames.lance, and as rows of steps.lance."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import lance
import numpy as np
import pyarrow as pa

from data_lake.view import ViewEpisode
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Steps:
    """Control steps of one episode: proprio_TP, actions_TA, float32."""

    proprio_TP: np.ndarray
    actions_TA: np.ndarray


STEPS = ("action", "proprio")


def read_steps(frames_uri: str, version: int, episodes: Sequence[ViewEpisode]) -> list[Steps]:
    """Steps of each episode from `frames.lance` at `version`; memory is that of these episodes' rows.

    Raises UserError PREP-002 when an episode's rows are not exactly those that its view names.
    """
    frames = lance.dataset(frames_uri, version=version)
    found = []
    for run in _adjacent(episodes):
        table = frames.to_table(
            columns=["episode_index", "frame_index", "observation_state", "action"],
            offset=run[0].from_index,
            limit=sum(episode.length for episode in run),
        )
        start = 0
        for episode in run:
            rows = table.slice(start, episode.length)
            _check(rows, episode, f"{frames_uri} at version {version}")
            found.append(Steps(proprio_TP=vectors(rows["observation_state"]), actions_TA=vectors(rows["action"])))
            start += episode.length
    return found


def _adjacent(episodes: Sequence[ViewEpisode]) -> list[list[ViewEpisode]]:
    """Episodes whose rows follow one another, together."""
    runs = [[episodes[0]]]
    for before, episode in pairwise(episodes):
        if episode.from_index == before.from_index + before.length:
            runs[-1].append(episode)
        else:
            runs.append([episode])
    return runs


def _check(rows: pa.Table, episode: ViewEpisode, where: str) -> None:
    own = rows["episode_index"].to_numpy() == episode.episode_index
    count = np.arange(episode.length)
    if not (own.all() and np.array_equal(rows["frame_index"].to_numpy(), count)):
        raise UserError(
            "PREP-002",
            f"episode {episode.episode_index} has {own.sum()} rows there, or gaps: its view says {episode.length}",
            where=f"{where}, rows from {episode.from_index}",
            next_step="run `./vlaloop doctor` on the data set",
        )


def vectors(column: pa.ChunkedArray) -> np.ndarray:
    """A column of fixed-size lists as (T, D) float32."""
    array = column.combine_chunks()
    return array.flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(len(array), array.type.list_size)


def fixed_lists(rows_TD: np.ndarray) -> pa.FixedSizeListArray:
    """(T, D) as a column of fixed-size lists of float32."""
    return pa.FixedSizeListArray.from_arrays(pa.array(rows_TD.astype(np.float32).reshape(-1)), rows_TD.shape[1])


def steps_schema(action_dim: int, proprio_dim: int) -> pa.Schema:
    """Columns of steps.lance."""
    dims = {"action": action_dim, "proprio": proprio_dim}
    return pa.schema([pa.field(name, pa.list_(pa.float32(), dims[name])) for name in STEPS])


def steps_batch(steps: Steps) -> pa.RecordBatch:
    """Rows of steps.lance: one per control step."""
    return pa.record_batch([fixed_lists(steps.actions_TA), fixed_lists(steps.proprio_TP)], names=list(STEPS))


def steps_of_rows(path: str, first: int, lengths: Sequence[int]) -> list[Steps]:
    """Steps of consecutive episodes of these lengths from steps.lance at `path`, the first at row `first`."""
    table = lance.dataset(path).to_table(columns=list(STEPS), offset=first, limit=sum(lengths))
    proprio_TP, actions_TA = vectors(table["proprio"]), vectors(table["action"])
    ends = np.cumsum(lengths)[:-1]
    return [
        Steps(proprio_TP=proprio, actions_TA=actions)
        for proprio, actions in zip(np.split(proprio_TP, ends), np.split(actions_TA, ends), strict=True)
    ]
