"""Where the lake (data, records) and the home (local state) are. Runtime, never identity."""

import os
from dataclasses import dataclass
from pathlib import Path

from errors import UserError

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: code, deployments and tests are beside each other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    lake: Path
    home: Path

    def environment(self) -> dict[str, str]:
        """What a child needs so that it finds the same places."""
        return {"VLALOOP_LAKE": str(self.lake), "VLALOOP_HOME": str(self.home)}


def places(lake: str | Path | None = None, home: str | Path | None = None) -> Places:
    """`lake`: argument, `VLALOOP_LAKE`, `./lake`. `home`: argument, `VLALOOP_HOME`, `.vlaloop/` beside the lake.

    Raises UserError CLI-007 where a file is in the way.
    """
    chosen = Path(lake or os.environ.get("VLALOOP_LAKE") or "lake").expanduser().resolve()
    state = home or os.environ.get("VLALOOP_HOME")
    found = Places(lake=chosen, home=Path(state).expanduser().resolve() if state else chosen.parent / ".vlaloop")
    for path in (found.lake, found.home):
        if path.exists() and not path.is_dir():
            raise UserError("CLI-007", "this is a file, not a folder", where=str(path), next_step="name another place")
    return found
