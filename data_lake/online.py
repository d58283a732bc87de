"""Pack samples that come one by one, of unknown number, into rows: best fit within a bounded buffer."""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator

from errors import UserError


def pack_stream(samples: Iterable[tuple[int, int]], *, capacity: int, window: int) -> Iterator[list[int]]:
    """Rows of ids, each sample in exactly one, from (id, length) as they come; at most `window` are held back.

    A row begins with the sample that has waited longest, so none waits for ever, and takes the longest that still
    fits, again and again. The same samples give the same rows. Ids must differ. Raises UserError LOAD-013 for a
    sample longer than a row.
    """
    waiting: deque[tuple[int, int]] = deque()  # in order of arrival; those taken meanwhile are skipped
    by_length: list[tuple[int, int, int]] = []  # length, turn (earlier ones first among equals), id
    for turn, (id_, length) in enumerate(samples):
        if length > capacity:
            raise UserError(
                "LOAD-013",
                f"sample {id_} has {length} tokens, more than a row of {capacity}",
                next_step=f"set the capacity to {length} or more",
            )
        waiting.append((length, turn))
        insort(by_length, (length, -turn, id_))
        if len(by_length) >= window:
            yield _row(waiting, by_length, capacity)
    while by_length:
        yield _row(waiting, by_length, capacity)


def _row(waiting: deque[tuple[int, int]], by_length: list[tuple[int, int, int]], capacity: int) -> list[int]:
    place = -1
    while place < 0:
        length, turn = waiting.popleft()
        found = bisect_right(by_length, (length, -turn, 2**63)) - 1
        place = found if found >= 0 and by_length[found][:2] == (length, -turn) else -1
    row, room = list[int](), capacity
    while place >= 0:
        length, _, id_ = by_length.pop(place)
        row.append(id_)
        room -= length
        place = bisect_right(by_length, (room, 1, 2**63)) - 1
    return row
