"""Meta-World as the loop uses it: the same worlds as its own constructor gives, poses from seeds, safety events."""

from collections.abc import Iterator

import mujoco
import numpy as np
import pytest

from errors import UserError
from model_core.sim import SIMULATORS, open_expert, open_simulator
from model_core.sim.actors import NoisyExpert, RandomActor
from model_core.sim.metaworld import FAUCET_GOALS, MetaWorld, _environment, _Parts, faucet_goal
from model_core.sim.rollout import Outcome, rollout
from model_core.sim.simulator import Simulator
from tests.model_core.sim.worlds import COLLECT, SCENE

DRAWER, FAUCET = "drawer-open-v3", "faucet-open-v3"


@pytest.fixture(scope="module")
def world() -> Iterator[Simulator]:
    simulator = open_simulator(SCENE)
    yield simulator
    simulator.close()


def demonstrate(world: Simulator, task: str, seed: int) -> Outcome:
    expert = NoisyExpert(open_expert("metaworld", task), COLLECT)
    return rollout(world, expert, task=task, instruction="", seeds=[seed], block_size=1, max_steps=200)[0]


@pytest.mark.parametrize("name", sorted(SIMULATORS))
def test_a_seed_and_actions_give_one_course(name: str, world: Simulator) -> None:
    """In a lane that was used before, in a new simulator, and beside other lanes."""
    assert isinstance(world, MetaWorld), f"{name} has no case here"
    first = demonstrate(world, FAUCET, 3)
    demonstrate(world, FAUCET, 4)
    fresh = open_simulator(SCENE)
    for other in (world, fresh):
        again = demonstrate(other, FAUCET, 3)
        assert np.array_equal(again.executed, first.executed)
        assert (again.success, again.steps) == (first.success, first.steps)
    alone = fresh.reset(DRAWER, [8])[0].privileged
    assert np.array_equal(fresh.reset(DRAWER, [7, 8])[1].privileged, alone)
    assert np.array_equal(fresh.render([1])[0]["top"], _picture(world, 8))
    fresh.close()


def _picture(world: Simulator, seed: int) -> np.ndarray:
    world.reset(DRAWER, [seed])
    return world.render([0])[0]["top"]


def test_seeds_vary_the_pose(world: Simulator) -> None:
    places = [world.reset(DRAWER, [seed])[0].privileged[4:7] for seed in range(5)]
    assert len({tuple(place.round(4)) for place in places}) == 5
    assert len({_picture(world, seed).tobytes() for seed in range(3)}) == 3


@pytest.mark.parametrize("task", [DRAWER, pytest.param("button-press-topdown-v3", marks=pytest.mark.slow)])
def test_lanes_are_what_the_library_makes(task: str, world: Simulator) -> None:
    """`gym.make` of MT1, reset once through its wrappers and unwrapped, is the recipe that experts are proved on."""
    gymnasium = pytest.importorskip("gymnasium")
    made = gymnasium.make("Meta-World/MT1", env_name=task, seed=0)
    made.reset()
    recipe = made.unwrapped
    recipe._freeze_rand_vec, recipe.seeded_rand_vec = False, True
    recipe.seed(11)
    expected, _ = recipe.reset()
    state = world.reset(task, [11])[0]
    assert np.array_equal(state.privileged, expected)
    action = np.array([0.3, -0.2, 0.1, 1.0], np.float32)
    for _ in range(20):
        expected, *_ = recipe.step(action)
        state = world.step(action[None], [True])[0]
    assert np.array_equal(state.privileged, expected)
    assert np.array_equal(state.proprio, expected[:4].astype(np.float32))
    made.close()


def test_experts_succeed_safely_and_chance_does_not(world: Simulator) -> None:
    outcomes = [demonstrate(world, FAUCET, seed) for seed in range(3)]
    assert all(outcome.safe and not outcome.limit_hits for outcome in outcomes)
    assert [outcome.other_goal for outcome in outcomes] == [False] * 3
    chance = RandomActor(action_dim=4, execution_horizon=8, seed=0)
    tried = rollout(world, chance, task=FAUCET, instruction="", seeds=range(4), block_size=4, max_steps=100)
    assert sum(outcome.success for outcome in tried) == 0


def test_the_other_faucet_goal_is_the_other_task_s_own() -> None:
    """Turn the handle to either side: each rule agrees with the environment whose goal it is."""
    shipped = {task: MetaWorld(SCENE)._model(task) for task in FAUCET_GOALS}
    for task in FAUCET_GOALS:
        env = _environment(task, shipped[task])
        env.seed(0)
        env.reset()
        assert not any(faucet_goal(env, each) for each in FAUCET_GOALS)
        seen = set()
        for angle in (-np.pi / 2, np.pi / 2):
            position = env.data.qpos.copy()
            position[-1] = angle
            env.set_state(position, np.zeros_like(env.data.qvel))
            _, told = env.evaluate_state(env._get_obs(), np.zeros(4))
            assert faucet_goal(env, task) == bool(told["success"])
            seen.add((faucet_goal(env, "faucet-open-v3"), faucet_goal(env, "faucet-close-v3")))
        assert seen == {(True, False), (False, True)}


def test_bad_actions_are_refused_and_counted(world: Simulator) -> None:
    before = world.reset(DRAWER, [0])[0]
    state = world.step(np.array([[np.nan, 0, 0, 0]], np.float32), [True])[0]
    assert (state.events.non_finite, state.events.limit_hit) == (True, False)
    assert np.abs(state.proprio[:3] - before.proprio[:3]).max() < 0.005
    assert world.step(np.array([[1.5, 0, 0, 0]], np.float32), [True])[0].events.limit_hit


def test_idle_lanes_stay(world: Simulator) -> None:
    first = world.reset(DRAWER, [0, 1])
    moved = world.step(np.ones((2, 4), np.float32), [False, True])
    assert moved[0] is first[0]
    assert not np.array_equal(moved[1].proprio, first[1].proprio)


ARM = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
<body name="{floor}"><geom type="box" size="1 1 .1" pos="0 0 -.1"/></body>
<body name="base" pos="3 0 1"><geom size=".01" contype="0" conaffinity="0"/>
 <body name="{link}" pos="-3 0 -0.9"><freejoint/><geom type="box" size=".1 .1 .1" mass="{mass}"/></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("link", "floor", "mass", "collides"),
    [
        ("right_l6", "tablelink", 10, True),  # 98 N
        ("right_l6", "tablelink", 0.5, False),  # 5 N: a touch
        ("right_l6", "drawer_link", 10, True),  # the arm has no business with objects
        ("right_hand", "drawer_link", 10, False),  # the gripper has
        ("right_hand", "tablelink", 10, True),
    ],
)
def test_collisions(link: str, floor: str, mass: float, collides: bool) -> None:
    text = ARM.format(link=link, floor=floor, mass=mass).replace("<freejoint/>", '<joint type="slide" axis="0 0 1"/>')
    model = mujoco.MjModel.from_xml_string(text)
    simulated = mujoco.MjData(model)
    for _ in range(1000):
        mujoco.mj_step(model, simulated)
    assert simulated.ncon
    assert _Parts(model).collide(model, simulated) is collides


def test_fingerprint_names_what_decides(world: Simulator) -> None:
    world.reset(DRAWER, [0])
    told = world.fingerprint()
    assert told["simulator"] == "metaworld"
    assert set(told["versions"]) == {"metaworld", "mujoco", "gymnasium", "numpy"}
    assert told["physics"]["timestep_s"] == 0.0025
    assert told["renderer"]
    assert set(told["assets"]) >= {DRAWER}
    assert told == world.fingerprint()


def test_unknown_names_are_told() -> None:
    with pytest.raises(UserError, match="SIM-002"):
        MetaWorld(SCENE).reset("fold-laundry", [0])
    with pytest.raises(UserError, match="SIM-002"):
        open_expert("metaworld", "fold-laundry")
    with pytest.raises(UserError, match="NAME-001"):
        open_expert("metawrld", DRAWER)
