"""Find patterns that fill rows: which lengths go together, how often. Works on the histogram, never on items.

Two planners, and the one with fewer rows wins: best fill by subset sums (the longest class left, then companions
that fill the rest exactly), and first fit decreasing, the classic, as the floor.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence

Members = tuple[tuple[int, int], ...]  # (class, how many of it in one row), classes ascending
Pattern = tuple[Members, int]  # what is in such a row, and how many such rows

HALVED = 3  # patterns of one opening class that take only half of the rows they could


def plan(lengths: Sequence[int], counts: Sequence[int], capacity: int) -> list[Pattern]:
    """Patterns that use each class exactly `counts` times, every row at most `capacity` long.

    lengths: of the classes, strictly descending, each between 1 and capacity. counts: at least 1 each.
    """
    best = best_fill(lengths, counts, capacity)
    tokens = sum(length * count for length, count in zip(lengths, counts, strict=True))
    if num_rows(best) == -(-tokens // capacity):  # nothing can need fewer rows
        return best
    return min(best, first_fit_decreasing(lengths, counts, capacity), key=num_rows)


def num_rows(patterns: Sequence[Pattern]) -> int:
    return sum(rows for _, rows in patterns)


def best_fill(lengths: Sequence[int], counts: Sequence[int], capacity: int) -> list[Pattern]:
    """Open each row with the longest class left and fill the rest with companions, exactly where possible.

    The first patterns of an opening class take half of the rows that the counts allow: then a class meets
    several sets of others, not always the same.
    """
    left = list(counts)
    by_tokens = sorted((-count * length, c) for c, (count, length) in enumerate(zip(counts, lengths, strict=True)))
    patterns: list[Pattern] = []
    for opener, length in enumerate(lengths):
        opened = 0
        while left[opener]:
            left[opener] -= 1
            members = _companions(lengths, left, by_tokens, capacity - length)
            left[opener] += 1
            members[opener] = members.get(opener, 0) + 1
            rows = min(left[c] // number for c, number in members.items())
            opened += 1
            if opened <= HALVED:
                rows = (rows + 1) // 2
            for c, number in members.items():
                del by_tokens[bisect_left(by_tokens, (-left[c] * lengths[c], c))]
                left[c] -= number * rows
                if left[c]:
                    insort(by_tokens, (-left[c] * lengths[c], c))
            patterns.append((tuple(sorted(members.items())), rows))
    return _merged(patterns)


def _companions(
    lengths: Sequence[int], left: Sequence[int], by_tokens: Sequence[tuple[int, int]], gap: int
) -> dict[int, int]:
    """How many of which classes fill `gap` best, by subset sums kept as the bits of one integer.

    Bit s of `reach` says that some companions are s tokens long together. Classes with most tokens left come
    first (by_tokens), so that none is left over at the end; each enters in chunks of 1, 2, 4, … items.
    """
    full, reach = 1 << gap, 1
    chunks: list[tuple[int, int, int]] = []  # class, items, reach before this chunk
    for _, c in by_tokens:
        if reach & full:
            break
        items, chunk = min(left[c], gap // lengths[c]), 1
        while items and not reach & full:
            chunk = min(chunk, items)
            chunks.append((c, chunk, reach))
            reach |= (reach << (lengths[c] * chunk)) & (2 * full - 1)
            items -= chunk
            chunk *= 2
    members: dict[int, int] = {}
    target = reach.bit_length() - 1
    for c, items, before in reversed(chunks):
        if not (before >> target) & 1:  # out of reach without this chunk, so it is in
            members[c] = members.get(c, 0) + items
            target -= items * lengths[c]
    return members


def first_fit_decreasing(lengths: Sequence[int], counts: Sequence[int], capacity: int) -> list[Pattern]:
    """First fit decreasing on groups of identical rows: the rows that item by item gives, at the cost of classes."""
    groups: list[tuple[Members, int, int]] = []  # members, room left, rows; in the order in which rows were opened
    for c, length in enumerate(lengths):
        left, filled = counts[c], []
        for members, room, rows in groups:
            fit = room // length
            if not left or not fit:
                filled.append((members, room, rows))
                continue
            whole = min(rows, left // fit)
            rest = min(left - whole * fit, fit - 1) if whole < rows else 0
            left -= whole * fit + rest
            for number, share in ((fit, whole), (rest, int(rest > 0)), (0, rows - whole - int(rest > 0))):
                if share:
                    filled.append((((*members, (c, number)) if number else members), room - number * length, share))
        fit = capacity // length
        for number, share in ((fit, left // fit), (left % fit, int(left % fit > 0))):
            if share:
                filled.append((((c, number),), capacity - number * length, share))
        groups = filled
    return _merged([(members, rows) for members, _, rows in groups])


def _merged(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Equal patterns as one, in the order of their first use."""
    total: dict[Members, int] = {}
    for members, rows in patterns:
        total[members] = total.get(members, 0) + rows
    return list(total.items())
