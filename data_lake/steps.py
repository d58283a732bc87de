"""Control steps of a view's episodes: read through Daft at the view's version, written as steps.lance."""

from dataclasses import dataclass
from pathlib import Path

import daft
import lance
import numpy as np
import pyarrow as pa

from data_lake.files import LakePath
from data_lake.view import DatasetView
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Steps:
    """Control steps of the view's episodes in order: proprio_TP, actions_TA; starts_E: first step of each episode."""

    proprio_TP: np.ndarray
    actions_TA: np.ndarray
    starts_E: np.ndarray


def read_steps(view: DatasetView, dataset: LakePath) -> Steps:
    """Rows of the view's episodes from `frames.lance` at the view's version, through Daft.

    Raises UserError PREP-002 when an episode's rows are not exactly those that its view names.
    """
    indices = [episode.episode_index for episode in view.episodes]
    frames = daft.read_lance(str(dataset / "frames.lance"), version=view.vector["frames"])
    chosen = frames.where(daft.col("episode_index").between(min(indices), max(indices)))
    table = chosen.select("episode_index", "frame_index", "observation_state", "action").to_arrow()
    episode_T, frame_T = (table[name].to_numpy() for name in ("episode_index", "frame_index"))
    order_T = np.lexsort((frame_T, episode_T))
    episode_T, frame_T = episode_T[order_T], frame_T[order_T]
    picked = []
    for episode in view.episodes:
        start, end = np.searchsorted(episode_T, [episode.episode_index, episode.episode_index + 1])
        if not np.array_equal(frame_T[start:end], np.arange(episode.length)):
            raise UserError(
                "PREP-002",
                f"episode {episode.episode_index} has {end - start} rows, or gaps: its view says {episode.length}",
                where=f"{dataset / 'frames.lance'} at version {view.vector['frames']}",
                next_step="run `./vlaloop doctor` on the data set",
            )
        picked.append(order_T[start:end])
    rows_T = np.concatenate(picked)
    lengths_E = [episode.length for episode in view.episodes]
    return Steps(
        proprio_TP=_vectors(table["observation_state"])[rows_T],
        actions_TA=_vectors(table["action"])[rows_T],
        starts_E=np.concatenate(([0], np.cumsum(lengths_E)))[:-1],
    )


def _vectors(column: pa.ChunkedArray) -> np.ndarray:
    """A column of fixed-size lists as (T, D) float32."""
    array = column.combine_chunks()
    return array.flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(len(array), array.type.list_size)


def fixed_lists(rows_TD: np.ndarray) -> pa.FixedSizeListArray:
    """(T, D) as a column of fixed-size lists of float32."""
    return pa.FixedSizeListArray.from_arrays(pa.array(rows_TD.astype(np.float32).reshape(-1)), rows_TD.shape[1])


def write_steps(steps: Steps, path: Path) -> None:
    """Write steps.lance: a row per control step."""
    columns = {"action": fixed_lists(steps.actions_TA), "proprio": fixed_lists(steps.proprio_TP)}
    lance.write_dataset(pa.table(columns), str(path), mode="create")
