"""Profiles: where a loop runs and with how much of the machine. A profile never names a hyper-parameter."""

from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from errors import UserError
from flows.places import ROOT, Places
from tasks.runtime import Runtime

FOLDER = ROOT / "deployments" / "profiles"

SETTABLE = {
    each.name: each.type for each in fields(Runtime) if each.name not in ("lake", "home", "run_id", "label", "sink")
}
"""What a profile may say: the fields of `Runtime` that describe a machine, with their types."""


def load_profile(name: str, where: Places, *, run_id: str, label: str = "") -> Runtime:
    """The runtime that the profile `name` (of deployments/profiles, or a YAML file) gives.

    Raises UserError PROFILE-001 for an unknown profile, PROFILE-002 for a field that is none, PROFILE-003 for a
    value that does not fit.
    """
    path = _path(name)
    return Runtime(lake=where.lake, home=where.home, run_id=run_id, label=label, **_settings(path))


def profiles() -> list[str]:
    """Names of the profiles that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def _path(name: str) -> Path:
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if path.exists():
        return path
    near = get_close_matches(name, profiles(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(profiles())}"
    raise UserError("PROFILE-001", f"unknown profile {name!r}", where=str(path), next_step=hint)


def _settings(path: Path) -> dict[str, Any]:
    import yaml

    found = yaml.safe_load(path.read_text()) or {}
    if not isinstance(found, dict):
        raise UserError("PROFILE-002", "a profile is a list of `field: value` lines", where=str(path))
    for name, value in found.items():
        if name not in SETTABLE:
            near = get_close_matches(str(name), SETTABLE, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(SETTABLE)}"
            raise UserError("PROFILE-002", f"a profile has no field {name!r}", where=str(path), next_step=hint)
        if not _fits(value, SETTABLE[name]):
            raise UserError("PROFILE-003", f"{name}: {value!r} is not a positive {SETTABLE[name]}", where=str(path))
    return found


def _fits(value: Any, kind: Any) -> bool:
    """Whether a YAML value is what the field declares; counts and times are not negative."""
    if isinstance(value, bool):
        return kind is bool
    if kind is str:
        return isinstance(value, str)
    return isinstance(value, (int, float) if kind is float else int) and value >= 0
