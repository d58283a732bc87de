"""Files of earlier outputs of a stage that a new one takes as they are, by name: linked where the disk can; on an
object store copied inside of it, whichever machine made them.

What a record vouches for, or the description of an unfinished attempt's block, is held to that before it is taken.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from upath import UPath

from data_lake import objects
from data_lake.files import LakePath, link_or_copy, name_below, tree
from data_lake.vouched import content_sha256, read_before_use


@dataclass(frozen=True, kw_only=True)
class Output:
    """A folder that the stage wrote. digests: SHA-256 of its files by name, as far as a record vouches for them. large:
    those of them that are taken on its word, as whoever builds on a slot takes them. stored: where all are on an object
    store; `folder` is then what this machine has of them, which may be nothing."""

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)
    large: frozenset[str] = frozenset()
    stored: UPath | None = None

    @classmethod
    def of_record(cls, lake: LakePath, mirror: Path, record: dict[str, Any]) -> "Output":
        """Of a finished slot: the folder that its ref names."""
        uri = record["ref"]["uri"]
        prefix = uri.removeprefix(f"{record['stage']}/{record['fingerprint']}/") + "/"
        files = {name.removeprefix(prefix): told for name, told in record["files"].items()}
        return cls(
            folder=mirror / uri,
            digests={name: told["sha256"] for name, told in files.items()},
            large=frozenset(files) - frozenset(read_before_use(files)),
            stored=None if isinstance(lake, Path) else lake / uri,
        )

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Bytes of what is on the store, by name: one listing."""
        return {} if self.stored is None else objects.below(self.stored)

    def is_here(self, name: str) -> bool:
        return os.path.exists(self.folder / name)

    def holds(self, name: str, told: str | None = None) -> bool:
        """Whether the file here has the SHA-256 that the record vouches for or, without one, that was `told`; not asked
        of what is large."""
        if name in self.large:
            return True
        digest = self.digests.get(name, told)
        return digest is None or content_sha256(self.folder / name) == digest


NOTHING: Mapping[str, str] = MappingProxyType({})


class Earlier:
    """What `outputs`, the best first, hold for `out`. vouch: told (path, SHA-256) of each file that was linked.

    copy: asked with (path, object, bytes, SHA-256) to put an object of the store where `path` will be there.
    """

    def __init__(
        self,
        out: Path,
        outputs: Sequence[Output] = (),
        vouch: Callable[[Path, str], None] = lambda _path, _digest: None,
        copy: Callable[[Path, UPath, int, str], None] = lambda _path, _source, _size, _digest: None,
    ) -> None:
        self._out, self._vouch, self._copy = out, vouch, copy
        self._holder: dict[str, Output] = {}
        for output in reversed(outputs):
            names = output.digests or [name_below(output.folder, path) for path in tree(output.folder)]
            self._holder.update(dict.fromkeys(names, output))

    def read(self, name: str) -> bytes | None:
        """The content of the file `name`, None where no output has it, or has it as it was."""
        holder = self._holder.get(name)
        if holder is not None and holder.is_here(name):
            return (holder.folder / name).read_bytes() if holder.holds(name) else None
        if holder is None or holder.stored is None or name not in holder.sizes:
            return None
        return objects.get(holder.stored / name)

    def made(self, digests: Mapping[str, str]) -> None:
        """Files of `out` whose SHA-256 is known since they were written."""
        for name, digest in digests.items():
            self._vouch(self._out / name, digest)

    def take(self, names: Iterable[str], *, unread: Collection[str] = (), told: Mapping[str, str] = NOTHING) -> bool:
        """Put these files into `out`, the last one last; False, and nothing is put, unless all are there as they were.

        unread: those that this build does not read; where only a store has them they are copied there, and not here.
        told: the SHA-256 of files for which no record vouches yet.
        """
        found = [(name, self._holder.get(name)) for name in names]
        holders = [(name, holder) for name, holder in found if holder is not None]
        if len(holders) < len(found) or not all(held.is_here(name) or name in held.sizes for name, held in holders):
            return False
        if not all(holder.holds(name, told.get(name)) for name, holder in holders if holder.is_here(name)):
            return False  # made anew
        for name, holder in holders:
            if holder.stored is not None and name in holder.sizes:
                self._copy(self._out / name, holder.stored / name, holder.sizes[name], holder.digests[name])
            if holder.is_here(name):
                linked = link_or_copy(holder.folder / name, self._out / name)
                if linked and name in holder.digests:
                    self._vouch(self._out / name, holder.digests[name])
            elif name not in unread:
                assert holder.stored is not None
                objects.download(holder.stored, {name: holder.sizes[name]}, self._out)
        return True
