"""The mirror: files of a lake on an object store as this machine has them, under its home and at the same names.

Attempts are written there and put into the store before their record; what needs a real folder is fetched to it, which
costs nothing where it was built. A lake in a folder is its own mirror.
"""

from pathlib import Path
from urllib.parse import quote

from data_lake import objects
from data_lake.files import LakePath
from errors import UserError


def mirror_of(lake: LakePath, home: Path) -> Path:
    """Where files of `lake` are on this machine."""
    return lake if isinstance(lake, Path) else home / "mirror" / quote(lake.path, safe="")


def fetched(lake: LakePath, uri: str, home: Path, *, tables: bool = True) -> Path:
    """The folder `uri` of the lake as files of this machine; those that a record vouches for never change, so what is
    here in its full size is not fetched again. tables: also what lies in Lance tables, which can be read from where
    they are. Raises UserError LAKE-174 when the lake has nothing there, LAKE-173
    when the disk has no room."""
    if isinstance(lake, Path):
        return lake / uri
    target = mirror_of(lake, home) / uri
    sizes = objects.below(lake / uri)
    if not sizes:
        raise UserError("LAKE-174", "the lake holds nothing there", where=str(lake / uri), next_step="./vlaloop ls")
    wanted = {name: size for name, size in sizes.items() if tables or ".lance/" not in name}
    absent = {name: size for name, size in wanted.items() if not _is_here(target / name, size)}
    if absent:
        objects.download(lake / uri, absent, target)
    return target


def _is_here(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
