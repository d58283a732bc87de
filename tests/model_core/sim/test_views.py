"""Pictures: framing by crop and flip, hidden goals, and savings that do not show."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from errors import UserError
from model_core.sim import open_simulator
from model_core.sim.metaworld import MetaWorld
from model_core.sim.views import SceneViews
from model_core.specs import SceneSpec
from tests.model_core.sim.worlds import CORNER, SCENE, TOP

TASK = "drawer-open-v3"
WHOLE = replace(TOP, crop=None)


@pytest.fixture(scope="module")
def world() -> Iterator[MetaWorld]:
    simulator = open_simulator(SCENE)
    assert isinstance(simulator, MetaWorld)
    simulator.reset(TASK, [3])
    yield simulator
    simulator.close()


def shown(world: MetaWorld, scene: SceneSpec, view: str = "top") -> np.ndarray:
    lane = world._active[0]
    views = SceneViews(lane.env.model, scene)
    try:
        return views.render(lane.env.data)[view].astype(int)
    finally:
        views.close()


def test_views_have_the_declared_shape(world: MetaWorld) -> None:
    views = world.render([0])[0]
    assert list(views) == ["top", "corner"]
    assert all(view.shape == (64, 64, 3) and view.dtype == np.uint8 for view in views.values())
    assert all(view.std() > 10 for view in views.values())


def test_a_crop_is_a_part_of_the_whole_picture(world: MetaWorld) -> None:
    whole = shown(world, replace(SCENE, cameras=(WHOLE,)))
    cut = shown(world, SCENE)
    assert np.abs(whole[4:68, 32:96] - cut).mean() < 1.0
    assert np.abs(whole[5:69, 32:96] - cut).mean() > 2.0  # a row further it would not match


def test_the_crop_counts_rows_of_the_flipped_picture(world: MetaWorld) -> None:
    whole = shown(world, replace(SCENE, cameras=(CORNER,)), "corner")
    part = replace(CORNER, crop=(0, 16, 32, 48))
    assert np.abs(whole[:32, 16:] - shown(world, replace(SCENE, cameras=(part,)), "corner")).mean() < 1.0


def test_flip_turns_the_picture_upside_down(world: MetaWorld) -> None:
    upright = shown(world, SCENE, "corner")
    turned = shown(world, replace(SCENE, cameras=(replace(CORNER, flip="none"),)), "corner")
    assert np.array_equal(upright, turned[::-1])


def test_goal_sites_are_hidden_unless_asked_for(world: MetaWorld) -> None:
    """Moving the goal's mark changes nothing that a policy sees."""
    lane = world._active[0]
    hidden, marked = shown(world, SCENE), shown(world, replace(SCENE, show_goal_sites=True))
    assert np.abs(hidden - marked).max() > 20
    kept = lane.env.data.site("goal").xpos.copy()
    lane.env.data.site("goal").xpos[:] += [0.05, 0.0, 0.0]
    assert np.array_equal(hidden, shown(world, SCENE))
    lane.env.data.site("goal").xpos[:] = kept


def test_what_is_not_drawn_does_not_show(world: MetaWorld) -> None:
    """Reflections switch the culling off; without a mirror in view the picture is the same."""
    culled = shown(world, SCENE)
    everything = shown(world, replace(SCENE, reflections=True))
    assert np.abs(culled - everything).mean() < 0.5


def test_thinned_meshes_do_not_reach_physics(world: MetaWorld) -> None:
    model = world._active[0].env.model
    faces, corners = model.mesh_facenum.copy(), model.mesh_face.copy()
    shown(world, SCENE)
    assert np.array_equal(model.mesh_facenum, faces)
    assert np.array_equal(model.mesh_face, corners)
    assert model.vis.quality.shadowsize > 0


def test_an_unknown_camera_is_told(world: MetaWorld) -> None:
    with pytest.raises(UserError, match="SIM-003"):
        shown(world, replace(SCENE, cameras=(replace(TOP, camera="drone"),)))
