"""Robots as values: cameras, layout of state and action, units, rate, which actions are learnt as changes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from errors import UserError
from lookup import lookup


@dataclass(frozen=True, kw_only=True, slots=True)
class Embodiment:
    """One robot as its data describes it.

    delta_mask: per action dim, whether the policy learns the change from the state at the start of the chunk
    (True) or the value itself (False). action_from_state: per action dim the state dim that the action
    commands, or -1 where none does. action_low, action_high: limits, None where they are not known.
    state_units, action_units: per dim.
    """

    name: str
    cameras: tuple[str, ...]
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    state_units: tuple[str, ...]
    action_units: tuple[str, ...]
    control_hz: float
    delta_mask: tuple[bool, ...]
    action_from_state: tuple[int, ...]
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None

    @property
    def state_dim(self) -> int:
        return len(self.state_names)

    @property
    def action_dim(self) -> int:
        return len(self.action_names)


def check_embodiment(robot: Embodiment) -> None:
    """Raises `UserError` EMBODIMENT-001 naming the field whose length or content contradicts the others."""
    expected = {
        "state_units": robot.state_dim,
        "action_units": robot.action_dim,
        "delta_mask": robot.action_dim,
        "action_from_state": robot.action_dim,
        "action_low": robot.action_dim,
        "action_high": robot.action_dim,
    }
    for name, value in asdict(robot).items():
        if name in expected and value is not None and len(value) != expected[name]:
            raise UserError("EMBODIMENT-001", f"{robot.name}: {name} has {len(value)} entries, not {expected[name]}")
    for name, index, is_delta in zip(robot.action_names, robot.action_from_state, robot.delta_mask, strict=True):
        if not -1 <= index < robot.state_dim or (is_delta and index < 0):
            raise UserError(
                "EMBODIMENT-001",
                f"{robot.name}: action {name} has state dim {index}, which cannot be",
                next_step=f"use 0 to {robot.state_dim - 1}, or -1 for an action that no state answers to",
            )


def find_embodiment(name: str) -> Embodiment:
    """The robot of that name in EMBODIMENTS, or of a dotted `package.module:VALUE`."""
    robot = lookup(EMBODIMENTS, name, "embodiment")
    check_embodiment(robot)
    return robot


def layout_of(robot: Embodiment) -> dict[str, Any]:
    """The robot as JSON-safe values, as a card keeps it."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(robot).items()}


def from_layout(layout: Mapping[str, Any]) -> Embodiment:
    """The robot that `layout_of` described."""
    fields: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in layout.items()}
    robot = Embodiment(**fields)
    check_embodiment(robot)
    return robot


# --- the robots that ship ---------------------------------------------------------------------------

METAWORLD_SAWYER = Embodiment(
    name="metaworld_sawyer",
    cameras=("top", "corner"),
    state_names=("hand_x", "hand_y", "hand_z", "gripper_opening"),
    action_names=("hand_dx", "hand_dy", "hand_dz", "gripper_effort"),
    state_units=("m", "m", "m", "fraction"),
    # a command of 1 moves the mocap target by 1 cm in a control step: already a change, learnt as it is
    action_units=("cm/step", "cm/step", "cm/step", "fraction"),
    control_hz=80.0,
    delta_mask=(False,) * 4,
    action_from_state=(-1,) * 4,
    action_low=(-1.0,) * 4,
    action_high=(1.0,) * 4,
)

# Groups in the order of modality.json of GR1 data sets; a state and its action have the same slice.
_GR1_GROUPS = (
    ("left_arm", 7),
    ("left_hand", 6),
    ("left_leg", 6),
    ("neck", 3),
    ("right_arm", 7),
    ("right_hand", 6),
    ("right_leg", 6),
    ("waist", 3),
)
_GR1_JOINTS = tuple(f"{group}_{i}" for group, size in _GR1_GROUPS for i in range(size))

GR1 = Embodiment(
    name="gr1",
    cameras=("ego_view",),
    state_names=_GR1_JOINTS,
    action_names=_GR1_JOINTS,
    state_units=("rad",) * 44,
    action_units=("rad",) * 44,
    control_hz=20.0,
    # Targets of body joints follow the state closely, so their change is learnt. Hands are commanded fully open
    # or closed (±1.5, ±3 rad) and their joints never get there: a change would carry the state's noise.
    delta_mask=tuple("hand" not in joint for joint in _GR1_JOINTS),
    action_from_state=tuple(range(44)),
    action_low=None,
    action_high=None,
)

EMBODIMENTS = {
    "metaworld_sawyer": "model_core.embodiments:METAWORLD_SAWYER",
    "gr1": "model_core.embodiments:GR1",
}
