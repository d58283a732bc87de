"""Meta-World (MuJoCo, Sawyer arm): poses from seeds, goals as the tasks define them, safety events from contacts."""

import copy
import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import mujoco
import numpy as np
from metaworld.env_dict import ALL_V3_ENVIRONMENTS
from metaworld.sawyer_xyz_env import SawyerXYZEnv

from errors import UserError
from model_core.sim.simulator import Events, State, vet
from model_core.sim.views import DETAIL_M, SceneViews
from model_core.specs import SceneSpec

PROPRIO = slice(0, 4)  # hand x, y, z and gripper opening; the rest of the observation tells where objects are
COLLISION_N = 20.0  # the gripper's own contacts with task objects are work, whatever their force
GRIPPER_ROOT = "right_hand"  # hand, claws and pads hang from it
ROBOT_ROOT = "base"
SURROUNDINGS = ("world", "tablelink", "RetainingWall")
FAUCET_REACH_M = 0.07  # both faucet tasks: distance of handle to target that counts as success
# per task of the pair: site that is pushed, its offset, and the target's offset from the faucet's base
FAUCET_GOALS = {
    "faucet-open-v3": ("handleStartOpen", (-0.04, 0.0, 0.02), (0.175, 0.0, 0.125)),
    "faucet-close-v3": ("handleStartClose", (0.0, 0.0, -0.01), (-0.175, 0.0, 0.125)),
}
OTHER_GOAL = {"faucet-open-v3": "faucet-close-v3", "faucet-close-v3": "faucet-open-v3"}


class MetaWorld:
    """Simulator of one scene; environments and renderers are made on first use and kept, per task."""

    control_hz = float(SawyerXYZEnv.metadata["render_fps"])
    action_dim = 4

    def __init__(self, scene: SceneSpec) -> None:
        if scene.max_steps > SawyerXYZEnv.max_path_length:
            limit = SawyerXYZEnv.max_path_length
            raise UserError("SIM-004", f"Meta-World ends an episode at {limit} steps; max_steps is {scene.max_steps}")
        self._scene = scene
        self._models: dict[str, mujoco.MjModel] = {}
        self._assets: dict[str, str] = {}
        self._gl_renderer = ""
        self._lanes: dict[str, list[_Lane]] = {}
        self._views: dict[str, SceneViews] = {}
        self._active: list[_Lane] = []
        self._task = ""

    def reset(self, task: str, seeds: Sequence[int]) -> list[State]:
        lanes = self._lanes.setdefault(task, [])
        while len(lanes) < len(seeds):
            lanes.append(_Lane(task, self._model(task)))
        self._task, self._active = task, lanes[: len(seeds)]
        return [lane.reset(seed) for lane, seed in zip(self._active, seeds, strict=True)]

    def step(self, actions_LA: np.ndarray, active: Sequence[bool]) -> list[State]:
        lanes = zip(self._active, actions_LA, active, strict=True)
        return [lane.step(action) if is_active else lane.state for lane, action, is_active in lanes]

    def render(self, lanes: Sequence[int]) -> list[dict[str, np.ndarray]]:
        views = self._scene_views()
        return [views.render(self._active[lane].env.data) for lane in lanes]

    def fingerprint(self) -> dict[str, Any]:
        model = next(iter(self._models.values()), None)
        if model is None:
            raise RuntimeError("nothing was simulated yet")
        if not self._gl_renderer:
            self._gl_renderer = self._scene_views().gl_renderer()
        return {
            "simulator": "metaworld",
            "versions": {name: version(name) for name in ("metaworld", "mujoco", "gymnasium", "numpy")},
            "renderer": self._gl_renderer,
            "gl": os.environ.get("MUJOCO_GL", ""),
            "render": {
                "shadows": self._scene.shadows,
                "reflections": self._scene.reflections,
                "antialiasing": self._scene.antialiasing,
                "show_goal_sites": self._scene.show_goal_sites,
                "mesh_detail_m": DETAIL_M,
            },
            "physics": {
                "timestep_s": model.opt.timestep,
                "control_hz": self.control_hz,
                "integrator": int(model.opt.integrator),
                "solver": int(model.opt.solver),
                "iterations": int(model.opt.iterations),
            },
            "assets": dict(sorted(self._assets.items())),
        }

    def close(self) -> None:
        for views in self._views.values():
            views.close()
        self._views.clear()
        self._lanes.clear()

    def _scene_views(self) -> SceneViews:
        assets = self._assets[self._task]  # tasks that share a world share its renderer
        if assets not in self._views:
            self._views[assets] = SceneViews(self._models[self._task], self._scene)
        return self._views[assets]

    def _model(self, task: str) -> mujoco.MjModel:
        """The task's world as shipped, read once; every lane moves things in a copy of its own."""
        if task not in ALL_V3_ENVIRONMENTS:
            known = ", ".join(sorted(ALL_V3_ENVIRONMENTS))
            raise UserError("SIM-002", f"Meta-World has no task {task!r}", next_step=f"known: {known}")
        if task not in self._models:
            self._models[task] = ALL_V3_ENVIRONMENTS[task]().model
            self._assets[task] = _digest(self._models[task])
        return self._models[task]


class _Lane:
    """One environment of a task, reset again and again."""

    def __init__(self, task: str, model: mujoco.MjModel) -> None:
        self.env = _environment(task, model)
        self._other = OTHER_GOAL.get(task)
        self._parts = _Parts(model)
        self.state = State(proprio=np.zeros(4, np.float32), privileged=np.zeros(0))

    def reset(self, seed: int) -> State:
        self.env.seed(seed)
        observation, _ = self.env.reset()
        self.state = self._state(observation, success=False, events=Events())
        return self.state

    def step(self, action_A: np.ndarray) -> State:
        action, limit_hit, non_finite = vet(np.asarray(action_A, np.float32), -1.0, 1.0)
        observation, _, _, _, told = self.env.step(action)
        collision = self._parts.collide(self.env.model, self.env.data)
        events = Events(collision=collision, limit_hit=limit_hit, non_finite=non_finite)
        self.state = self._state(observation, success=bool(told["success"]), events=events)
        return self.state

    def _state(self, observation: np.ndarray, *, success: bool, events: Events) -> State:
        return State(
            proprio=observation[PROPRIO].astype(np.float32),
            privileged=observation,
            success=success,
            other_goal=faucet_goal(self.env, self._other) if self._other else None,
            events=events,
        )


def _environment(task: str, model: mujoco.MjModel) -> SawyerXYZEnv:
    """An environment whose goal is visible in the observation and whose poses follow `seed()`.

    Equal to `gym.make("Meta-World/MT1", …)` reset once through its wrappers (a test compares them), without
    reading the model from files and without fifty resets for tasks that are not used.
    """

    shipped: Any = ALL_V3_ENVIRONMENTS[task]

    class Lane(shipped):
        def __init__(self) -> None:
            super().__init__()
            self._partially_observable = False
            self.__dict__.pop("sawyer_observation_space", None)  # cached with the goal hidden
            self._set_task_called = True
            self._freeze_rand_vec = False
            self.seeded_rand_vec = True

        def _initialize_simulation(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
            own = copy.copy(model)
            return own, mujoco.MjData(own)

    return Lane()


def faucet_goal(env: SawyerXYZEnv, task: str) -> bool:
    """Whether the goal of faucet task `task` holds in `env`, by the rule of that task's own environment."""
    site, offset, target = FAUCET_GOALS[task]
    handle = env.data.site(site).xpos + np.array(offset)
    return bool(np.linalg.norm(handle - (env.obj_init_pos + np.array(target))) <= FAUCET_REACH_M)


class _Parts:
    """What each geom belongs to, so that contacts can be told apart."""

    def __init__(self, model: mujoco.MjModel) -> None:
        chains = [_chain(model, body) for body in range(model.nbody)]
        gripper = np.array([GRIPPER_ROOT in chain for chain in chains])
        robot = np.array([ROBOT_ROOT in chain for chain in chains])
        around = np.array([chain[0] in SURROUNDINGS for chain in chains])
        self._gripper = gripper[model.geom_bodyid]
        self._robot = robot[model.geom_bodyid]
        self._arm = self._robot & ~self._gripper
        self._around = around[model.geom_bodyid]

    def collide(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Whether the arm presses on anything, or the gripper on table or walls, with more than COLLISION_N."""
        if not data.ncon:
            return False
        one, two = data.contact.geom.T
        touches = self._arm[one] & ~self._robot[two] | self._arm[two] & ~self._robot[one]
        touches |= self._gripper[one] & self._around[two] | self._gripper[two] & self._around[one]
        return any(_normal_force(model, data, int(contact)) > COLLISION_N for contact in np.flatnonzero(touches))


def _normal_force(model: mujoco.MjModel, data: mujoco.MjData, contact: int) -> float:
    force = np.zeros(6)
    mujoco.mj_contactForce(model, data, contact, force)
    return float(force[0])


def _chain(model: mujoco.MjModel, body: int) -> list[str]:
    """Names from the body up to the world."""
    names = [model.body(body).name]
    while body:
        body = int(model.body_parentid[body])
        names.append(model.body(body).name)
    return names


def _digest(model: mujoco.MjModel) -> str:
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return hashlib.sha256(buffer.tobytes()).hexdigest()[:16]
