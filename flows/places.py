"""Where the lake (data, records) and the home (local state) are. Runtime, never identity."""

import os
from dataclasses import dataclass
from pathlib import Path

from data_lake.files import LakePath, lake_path
from data_lake.objects import require_bucket
from errors import UserError

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: code, deployments and tests are beside each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    lake: LakePath
    home: Path

    def environment(self) -> dict[str, str]:
        """What a child needs so that it finds the same places."""
        return {"VLALOOP_LAKE": str(self.lake), "VLALOOP_HOME": str(self.home)}


def places(lake: str | LakePath | None = None, home: str | Path | None = None) -> Places:
    """`lake`: argument, `VLALOOP_LAKE`, `./lake`. `home`: argument, `VLALOOP_HOME`, `.vlaloop/` beside the lake,
    in the present folder where the lake is on an object store.

    Raises UserError CLI-007 where a file is in the way, LAKE-170 … 172 for an object store that cannot be used.
    """
    chosen = lake_path(str(lake or os.environ.get("VLALOOP_LAKE") or "lake"))
    state = home or os.environ.get("VLALOOP_HOME")
    beside = chosen.parent if isinstance(chosen, Path) else Path.cwd()
    found = Places(lake=chosen, home=Path(state).expanduser().resolve() if state else beside / ".vlaloop")
    if not isinstance(chosen, Path):
        require_bucket(chosen)
    for path in (found.lake, found.home):
        if isinstance(path, Path) and path.exists() and not path.is_dir():
            raise UserError("CLI-007", "this is a file, not a folder", where=str(path), next_step="name another place")
    return found
