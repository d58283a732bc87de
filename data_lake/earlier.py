"""Files of earlier outputs of a stage that a new one takes as they are, by name: linked where the disk can.

What a finished slot's record vouches for is not read again; what an unfinished attempt left is.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_lake.files import link_or_copy, name_below, tree


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """A folder that the stage wrote. digests: SHA-256 of its files by name, as far as a record vouches for them."""

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_record(cls, slot: Path, record: dict[str, Any]) -> "Output":
        """Of a finished slot: the folder that its ref names."""
        folder = slot.parents[1] / record["ref"]["uri"]
        prefix = folder.relative_to(slot).as_posix() + "/"
        files = {name.removeprefix(prefix): told["sha256"] for name, told in record["files"].items()}
        return cls(folder=folder, digests=files)


class Earlier:
    """What `outputs`, the best first, hold for `out`. vouch: told (path, SHA-256) of each file that was linked."""

    def __init__(
        self,
        out: Path,
        outputs: Sequence[Output] = (),
        vouch: Callable[[Path, str], None] = lambda _path, _digest: None,
    ) -> None:
        self._out, self._vouch = out, vouch
        self._holder: dict[str, Output] = {}
        for output in reversed(outputs):
            names = output.digests or [name_below(output.folder, path) for path in tree(output.folder)]
            self._holder.update(dict.fromkeys(names, output))

    def read(self, name: str) -> bytes | None:
        """The content of the file `name`, None where no output has it."""
        holder = self._holder.get(name)
        path = holder.folder / name if holder else None
        return path.read_bytes() if path is not None and path.exists() else None

    def take(self, names: Iterable[str]) -> bool:
        """Put these files into `out`, the last one last; False, and nothing is put, unless all are there."""
        found = [(name, self._holder.get(name)) for name in names]
        if not all(holder is not None and os.path.exists(holder.folder / name) for name, holder in found):
            return False
        for name, holder in found:
            assert holder is not None
            linked = link_or_copy(holder.folder / name, self._out / name)
            if linked and name in holder.digests:
                self._vouch(self._out / name, holder.digests[name])
        return True
