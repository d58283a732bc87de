"""What must hold of one episode before it may enter the lake: its rows, and each of its video spans."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.clashes import one_in_the_lake
from data_lake.findings import Finding, finding
from data_lake.pictures import PicturesIndex
from data_lake.schema import in_lists, is_kept, is_listed, is_number, is_vector, vectors
from data_lake.sources.episode import Episode, Feature, Pictures, SourceCard, VideoSpan
from data_lake.trial import Trial
from data_lake.video import VideoIndex

REQUIRED = ("observation.state", "action")
START_S = 1e-4  # LeRobot's tolerance between a timestamp and its frame
OTHER_RATE = 0.15  # a declared rate further off is wrong: those in use lie further apart, and a slow recorder nearer
_KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def check_rows(episode: Episode, card: SourceCard) -> Iterator[Finding]:
    """Of an episode whose rows could be read."""
    rows, number, file = episode.rows, episode.source_episode, episode.file
    if rows is None:
        return
    if rows.num_rows == 0 and not episode.length:
        yield finding("LAKE-020", episode=number, file=file)
        return
    if episode.length is not None and episode.length != rows.num_rows:
        detail = f"{episode.length} declared, {rows.num_rows} found"
        yield finding("LAKE-012", detail, episode=number, file=file)
    if rows.num_rows == 0:
        return
    for detail in one_in_the_lake(rows, card.features, episode.views):
        yield finding("LAKE-230", detail, episode=number, file=file)
    for name in REQUIRED:
        if name not in rows.column_names:
            yield finding("LAKE-025", name, episode=number, file=file)
    yield from _numbering(episode, rows)
    if kinds := [f"{column.name} ({column.type})" for column in rows.schema if _is_left_out(column)]:
        yield finding("LAKE-252", ", ".join(kinds), episode=number, file=file)
    for name in rows.column_names:
        yield from _column(episode, name, rows[name], card.features.get(name))
    yield from _timestamps(episode, rows, card.fps)


def _is_left_out(column: pa.Field) -> bool:
    """Whether the lake has no place for values of this kind; the words of an instruction are in `task`."""
    kind = column.type.value_type if is_vector(column.type) else column.type
    return is_kept(column.name) and column.name not in ("task", *REQUIRED) and not is_number(kind)


def _numbering(episode: Episode, rows: pa.Table) -> Iterator[Finding]:
    number, file = episode.source_episode, episode.file
    if "episode_index" in rows.column_names:
        owners = rows["episode_index"].to_pylist()
        strange = next((row for row, owner in enumerate(owners) if owner != number), None)
        if strange is not None:
            detail = f"row {strange} says episode {owners[strange]}"
            yield finding("LAKE-021", detail, episode=number, row=strange, file=file)
    if "frame_index" not in rows.column_names:
        yield finding("LAKE-046", episode=number, file=file)
        return
    frames = rows["frame_index"].to_pylist()
    wrong = next((row for row, frame in enumerate(frames) if frame != row), None)
    if wrong is not None:
        detail = f"row {wrong} has {frames[wrong]}"
        yield finding("LAKE-018", detail, episode=number, row=wrong, file=file)


def _column(episode: Episode, name: str, column: pa.ChunkedArray, declared: Feature | None) -> Iterator[Finding]:
    number, file = episode.source_episode, episode.file
    kind = column.type.value_type if is_vector(column.type) else column.type
    numeric = is_number(kind)
    expected = None if declared is None else np.dtype(declared.dtype).kind if _is_dtype(declared.dtype) else None
    if name in REQUIRED and not numeric:
        yield finding("LAKE-019", f"{name} is {column.type}", episode=number, file=file)
        return
    if expected is not None and numeric and _KINDS.get(expected) != _kind(kind):
        detail = f"{name} is {column.type}, declared {declared.dtype if declared else ''}"
        yield finding("LAKE-019", detail, episode=number, file=file)
        return
    if not numeric:
        if expected is not None and not is_vector(kind):  # of more dimensions it may be what is declared
            yield finding("LAKE-019", f"{name} is {column.type}", episode=number, file=file)
        return
    yield from _values(episode, name, column, declared)


def _values(episode: Episode, name: str, column: pa.ChunkedArray, declared: Feature | None) -> Iterator[Finding]:
    """Finite, and as wide as declared."""
    number, file = episode.source_episode, episode.file
    rows_TD = vectors(column)
    if rows_TD is None:
        row = _first_odd_row(column)
        code = "LAKE-016" if column[row].as_py() is None or None in np.atleast_1d(column[row].as_py()) else "LAKE-019"
        yield finding(code, f"{name} in row {row}", episode=number, row=row, file=file)
        return
    width = int(np.prod(declared.shape)) if declared is not None and declared.shape else rows_TD.shape[1]
    if width != rows_TD.shape[1]:
        detail = f"{name} has {rows_TD.shape[1]} dimensions, declared {width}"
        yield finding("LAKE-019", detail, episode=number, file=file)
    elif rows_TD.dtype.kind == "f":
        stored_TD = in_lists(rows_TD) if is_listed(name, column.type) else rows_TD
        finite_T = np.isfinite(stored_TD).all(axis=1)
        if not finite_T.all():
            row = int(np.argmin(finite_T))
            dimension = int(np.argmin(np.isfinite(stored_TD[row])))
            beyond = ", which float32 cannot hold" if np.isfinite(rows_TD[row, dimension]) else ""
            detail = f"{name}[{dimension}] is {rows_TD[row, dimension]} in row {row}{beyond}"
            yield finding("LAKE-016", detail, episode=number, row=row, file=file)


def _first_odd_row(column: pa.ChunkedArray) -> int:
    """The first row that is null, holds a null, or is not as wide as the first one."""
    values = column.to_pylist()
    width = None
    for row, value in enumerate(values):
        if value is None or (isinstance(value, list) and None in value):
            return row
        if isinstance(value, list):
            width = len(value) if width is None else width
            if len(value) != width:
                return row
    return 0


def _is_dtype(name: str) -> bool:
    return name in ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")


def _kind(kind: pa.DataType) -> str:
    return "bool" if pa.types.is_boolean(kind) else "float" if pa.types.is_floating(kind) else "int"


def _timestamps(episode: Episode, rows: pa.Table, fps: float) -> Iterator[Finding]:
    number, file = episode.source_episode, episode.file
    if "timestamp" not in rows.column_names:
        return
    column_TD = vectors(rows["timestamp"])
    if column_TD is None or not np.isfinite(column_TD.astype(np.float64)).all():
        return  # said by _values
    times = column_TD[:, 0].astype(np.float64)
    steps = np.diff(times)
    if (steps <= 0).any():
        row = int(np.argmax(steps <= 0)) + 1
        detail = f"row {row} at {times[row]:.4f} s after {times[row - 1]:.4f} s"
        yield finding("LAKE-017", detail, episode=number, row=row, file=file)
        return
    if len(steps) > 2 and (off := _off(steps, fps)):  # of fewer a gap may be the most
        yield finding("LAKE-250", off, episode=number, file=file)
        return
    if abs(times[0]) > START_S:
        yield finding("LAKE-047", f"the first is {times[0]:.5f} s", episode=number, row=0, file=file)
    if len(steps) == 0:
        return
    late = np.abs(times - times[0] - np.arange(len(times)) / fps)
    if late.max() > 0.5 / fps:
        row = int(np.argmax(late > 0.5 / fps))
        detail = f"row {row} is {late[row]:.3f} s off {fps:g} Hz, the longest step lasts {steps.max():.3f} s"
        yield finding("LAKE-058", detail, episode=number, row=row, file=file)
    elif late[-1] > 4 * np.spacing(np.float32(times[-1])):
        step = (times[-1] - times[0]) / len(steps)
        detail = f"a step is {step:.8f} s, not {1 / fps:.8f} s"
        yield finding("LAKE-049", detail, episode=number, file=file)


def _off(steps: np.ndarray, fps: float) -> str:
    """How steady steps (in seconds) are those of another rate, "" where they are not."""
    usual = float(np.median(steps))
    steady = np.mean(np.abs(steps - usual) < OTHER_RATE * usual) >= 0.9
    if not steady or abs(1 / usual - fps) < OTHER_RATE * fps:
        return ""
    return f"{1 / usual:.4g} rows a second, {fps:g} declared"


def check_video(
    episode: Episode, camera: str, span: VideoSpan, index: VideoIndex, card: SourceCard
) -> Sequence[Finding]:
    """Of one camera of an episode whose rows could be read: as many frames as rows, where and when it says."""
    assert episode.rows is not None
    where: dict[str, Any] = {"episode": episode.source_episode, "camera": camera, "file": card.relative(span.path)}
    num_rows, fps = episode.rows.num_rows, card.fps
    if index.turned:
        return [finding("LAKE-251", index.turned, **where)]
    end_s = float(index.times_s[-1]) + 1 / fps
    to_s = end_s if span.to_s is None else span.to_s
    if not 0 <= span.from_s < to_s or to_s > end_s + 0.5 / fps:
        detail = f"{span.from_s:.2f}-{to_s:.2f} s of a video of {end_s:.2f} s"
        return [finding("LAKE-013", detail, **where)]
    if span.to_s is not None and round((to_s - span.from_s) * fps) != num_rows:
        detail = f"{to_s - span.from_s:.3f} s at {fps:g} Hz for {num_rows} rows"
        return [finding("LAKE-015", detail, **where)]
    times = index.times_s if span.to_s is None else index.frames_between(span.from_s, to_s, fps)
    off = np.abs(times - span.from_s - np.arange(len(times)) / fps)
    if len(off) and off.max() > 0.5 / fps:
        row = int(np.argmax(off > 0.5 / fps))
        detail = f"frame {row} is shown at {times[row]:.3f} s, expected {span.from_s + row / fps:.3f} s"
        return [finding("LAKE-032", detail, row=row, **where)]
    if len(times) != num_rows:
        return [finding("LAKE-011", f"{len(times)} frames, {num_rows} rows", **where)]
    return _late_rows(episode, camera, span, times)


def check_trial(
    episode: Episode, camera: str, span: VideoSpan, trial: Trial | None, codec: str, card: SourceCard
) -> Sequence[Finding]:
    """Of what decoding gave: a codec that is absent here is no broken file."""
    if trial is None:
        return []
    if trial.absent:
        return [finding("LAKE-152", f"{codec}: {trial.absent}", camera=camera)]
    where: dict[str, Any] = {"episode": episode.source_episode, "camera": camera, "file": card.relative(span.path)}
    return broken_frames(trial, span.from_s, span.to_s or 0.0, card.fps, where)


def broken_frames(trial: Trial, from_s: float, to_s: float, fps: float, where: Mapping[str, Any]) -> list[Finding]:
    """LAKE-153 where frames of [from_s, to_s) did not decode. where: episode, camera and file."""
    slack = 0.5 / fps
    mine = [at for at in trial.broken_s if from_s - slack <= at < to_s - slack]
    if not mine:
        return []
    detail = f"{len(mine)}, the first at {mine[0]:.3f} s ({trial.told})"
    return [finding("LAKE-153", detail, row=round((mine[0] - from_s) * fps), **where)]


def check_pictures(
    episode: Episode, camera: str, pictures: Pictures, index: PicturesIndex, card: SourceCard
) -> Sequence[Finding]:
    """Of one camera that is no video, of an episode whose rows could be read: one picture per row."""
    assert episode.rows is not None
    if index.num_frames == episode.rows.num_rows:
        return []
    where: dict[str, Any] = {"episode": episode.source_episode, "camera": camera, "file": card.relative(pictures.path)}
    return [finding("LAKE-011", f"{index.num_frames} pictures, {episode.rows.num_rows} rows", **where)]


def _late_rows(episode: Episode, camera: str, span: VideoSpan, times: np.ndarray) -> list[Finding]:
    rows = episode.rows
    stamps_TD = vectors(rows["timestamp"]) if rows is not None and "timestamp" in rows.column_names else None
    if rows is None or stamps_TD is None or not len(times):
        return []
    last, shown = float(stamps_TD[-1, 0]), float(times[-1]) - span.from_s
    if last <= shown + START_S:
        return []
    detail = f"{last:.5f} s, the frame is shown at {shown:.2f} s"
    row = rows.num_rows - 1
    return [finding("LAKE-048", detail, episode=episode.source_episode, camera=camera, row=row, file=episode.file)]
