"""What a data set holds, for one reading of a source: each of its episodes answers for one of the source's at most.

A folder's recordings are numbered by their place, so one that is put in before others gives those behind it other
numbers. They are known by their content, and as often as the data set has it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from data_lake.lake_meta import contents_of

Entry = dict[str, Any]
"""Of a view."""


class Held:
    """label: what people call the source."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._rows: list[tuple[Mapping[str, Any], Callable[[Any], Entry]]] = []
        self._numbered: dict[tuple[int, str], list[int]] = {}
        self._of_source: dict[str, deque[int]] = {}
        self._answered: set[int] = set()
        self._entries: dict[tuple[int, str], Entry] = {}

    def put(self, rows: Iterable[Mapping[str, Any]], entry_of: Callable[[Any], Entry]) -> None:
        """Episodes that nobody asked for yet. rows: with source, source_episode and what `contents_of` reads.
        entry_of: makes a view's entry of a row."""
        for row in rows:
            place = len(self._rows)
            self._rows.append((row, entry_of))
            for content in contents_of(row):
                self._numbered.setdefault((row["source_episode"], content), []).append(place)
                if row["source"] == self._label:
                    self._of_source.setdefault(content, deque()).append(place)

    def keep(self, entry: Entry) -> None:
        """One that the source's episode of its number has become."""
        self._entries[entry["source_episode"], entry["content_hash"]] = entry

    def find(self, source_episode: int, content: str) -> Entry | None:
        """Of this number and content; else, of the same source, of this content under a number that it had before.
        The same again when it is asked for again."""
        asked = source_episode, content
        if asked not in self._entries:
            place = self._free(self._numbered.get(asked, ()), self._of_source.get(content, deque()))
            if place is None:
                return None
            self._answered.add(place)
            row, entry_of = self._rows[place]
            self._entries[asked] = entry_of(row)
        return self._entries[asked]

    def _free(self, numbered: Iterable[int], others: deque[int]) -> int | None:
        for place in numbered:
            if place not in self._answered:
                return place
        while others:
            if (place := others.popleft()) not in self._answered:
                return place
        return None
