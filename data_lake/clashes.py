"""Names of a source that would become one in the lake: two columns, two cameras, or one of each.

What is written second would take the place of the first, in silence, so such an episode stays out.
"""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from data_lake.schema import PLACE, is_kept, lake_name
from data_lake.sources.episode import view_name


def one_in_the_lake(rows: pa.Table, declared: Iterable[str], cameras: Iterable[str]) -> Iterator[str]:
    """A text per name of the lake that several names of the source would share, naming them.

    declared: columns, whether or not `rows` has them. cameras: of the episode. The lake's own numbers count as names.
    """
    kept = [name for name in (*rows.column_names, *declared) if is_kept(name)]
    cameras = tuple(cameras)
    yield from _shared("column", {name: lake_name(name) for name in (*PLACE, *kept, *cameras)})
    yield from _shared("view", {name: view_name(name) for name in cameras})


def _shared(what: str, called: Mapping[str, str]) -> Iterator[str]:
    """called: the lake's name of each of the source's."""
    owners: dict[str, list[str]] = {}
    for name, title in called.items():
        owners.setdefault(title, []).append(name)
    for title, names in owners.items():
        if len(names) > 1:
            yield f"{' and '.join(map(repr, names))} would both be the {what} {title!r}"
