"""The views of a MuJoCo scene, rendered as a SceneSpec says and as cheaply as the picture allows.

Three savings, none of which changes the framing: a cropped view renders only its crop, what lies outside
the view is not drawn, and mesh detail far below a pixel is left out.
"""

import copy
import math
from dataclasses import dataclass

import mujoco
import numpy as np

from errors import UserError
from model_core.specs import CameraSpec, SceneSpec

DETAIL_M = 0.32  # metres across an image at arm's length; mesh detail below DETAIL_M / pixels cannot be seen
MIN_FACES = 1000  # smaller meshes are not worth thinning
CULLED_GROUP = 5  # a geom group that no Meta-World geom uses


@dataclass(frozen=True, slots=True)
class _Frustum:
    """Side planes as slopes against depth, seen from the camera; `left` < `right`, `bottom` < `top`."""

    left: float
    right: float
    bottom: float
    top: float


class SceneViews:
    """Renders the cameras of a scene for any data of models with the layout of `model`."""

    def __init__(self, model: mujoco.MjModel, scene: SceneSpec) -> None:
        self._scene = scene
        self._model = copy.copy(model)  # physics never sees what is done to it
        self._model.vis.quality.offsamples = scene.antialiasing
        if not scene.shadows:
            self._model.vis.quality.shadowsize = 0  # before the renderer exists, or it pays for the map
        self._option = mujoco.MjvOption()
        self._option.geomgroup[CULLED_GROUP] = 0
        if not scene.show_goal_sites:
            self._option.sitegroup[:] = 0
        self._frusta = {camera.view: _frustum(self._model, camera) for camera in scene.cameras}
        self._renderers: dict[tuple[int, int], mujoco.Renderer] = {}

    def render(self, data: mujoco.MjData) -> dict[str, np.ndarray]:
        """Every view (height, width, 3) uint8 RGB of the world as `data` has it."""
        return {camera.view: self._view(data, camera) for camera in self._scene.cameras}

    def gl_renderer(self) -> str:
        """Name of the OpenGL implementation that draws."""
        from OpenGL import GL  # the platform is chosen when mujoco is imported

        camera = self._scene.cameras[0]
        self._renderer(*_size(camera)).render()
        name = GL.glGetString(GL.GL_RENDERER)
        return name.decode() if name is not None else ""

    def close(self) -> None:
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def _view(self, data: mujoco.MjData, camera: CameraSpec) -> np.ndarray:
        renderer = self._renderer(*_size(camera))
        camera_id = self._model.camera(camera.camera).id
        frustum = self._frusta[camera.view]
        renderer.model.geom_group[:] = self._model.geom_group
        if not self._scene.shadows and not self._scene.reflections:  # else what is out of view may still show
            renderer.model.geom_group[_outside(self._model, data, camera_id, frustum)] = CULLED_GROUP
        renderer.update_scene(data, camera_id, self._option)
        for eye in renderer.scene.camera:
            near = eye.frustum_near
            eye.frustum_center = near * (frustum.left + frustum.right) / 2
            eye.frustum_bottom = near * frustum.bottom
            eye.frustum_top = near * frustum.top
        pixels = renderer.render()
        return np.ascontiguousarray(pixels[::-1]) if camera.flip == "vertical" else pixels

    def _renderer(self, height: int, width: int) -> mujoco.Renderer:
        if (height, width) not in self._renderers:
            model = copy.copy(self._model)  # the renderer uploads its meshes once
            _thin(model, DETAIL_M / max(height, width))
            try:
                model.vis.global_.offheight, model.vis.global_.offwidth = height, width
                renderer = mujoco.Renderer(model, height, width)
            except (ImportError, AttributeError, RuntimeError) as error:
                raise UserError(
                    "SIM-001",
                    f"this machine cannot render off screen: {error}",
                    next_step="install Mesa's EGL (Debian, Ubuntu: apt-get install libegl1 libegl-mesa0 libgl1)",
                ) from error
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._scene.shadows
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = self._scene.reflections
            self._renderers[height, width] = renderer
        return self._renderers[height, width]


def _size(camera: CameraSpec) -> tuple[int, int]:
    return (camera.crop[2], camera.crop[3]) if camera.crop else (camera.height, camera.width)


def _frustum(model: mujoco.MjModel, camera: CameraSpec) -> _Frustum:
    """The part of the camera's frustum that the crop keeps. Pixels are square; row 0 is the top one."""
    try:
        half = math.tan(math.radians(model.camera(camera.camera).fovy[0]) / 2)
    except KeyError as error:
        raise UserError("SIM-003", f"the scene has no camera {camera.camera!r}", next_step=str(error)) from error
    top, left, height, width = camera.crop or (0, 0, camera.height, camera.width)
    if camera.flip == "vertical":  # the crop counts rows of the flipped picture
        top = camera.height - top - height
    pixel = 2 * half / camera.height
    right_edge, upper_edge = pixel * (left - camera.width / 2), half - pixel * top
    return _Frustum(right_edge, right_edge + pixel * width, upper_edge - pixel * height, upper_edge)


def _outside(model: mujoco.MjModel, data: mujoco.MjData, camera_id: int, frustum: _Frustum) -> np.ndarray:
    """Mask (num_geoms,) of geoms whose bounding sphere lies wholly beyond one side of the frustum."""
    right, up, back = data.cam_xmat[camera_id].reshape(3, 3).T
    offset = data.geom_xpos - data.cam_xpos[camera_id]
    x, y, depth = offset @ right, offset @ up, -(offset @ back)
    radius = model.geom_rbound
    beyond = depth < -radius
    for position, slope, sign in (
        (x, frustum.left, -1.0),
        (x, frustum.right, 1.0),
        (y, frustum.bottom, -1.0),
        (y, frustum.top, 1.0),
    ):
        beyond |= sign * (position - slope * depth) / math.hypot(1.0, slope) > radius
    return beyond & (radius > 0)  # a plane has no bounds


def _thin(model: mujoco.MjModel, cell_m: float) -> None:
    """Merge the corners of large meshes that share a cell of `cell_m` metres and drop the faces that collapse."""
    for mesh in range(model.nmesh):
        start, count = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
        if count < MIN_FACES:
            continue
        first = model.mesh_vertadr[mesh]
        cells = np.floor(model.mesh_vert[first : first + model.mesh_vertnum[mesh]] / cell_m).astype(np.int64)
        _, chosen, cell_of = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        faces = chosen[cell_of.ravel()][model.mesh_face[start : start + count]]
        a, b, c = faces.T
        solid = np.flatnonzero((a != b) & (b != c) & (a != c))
        _, unique = np.unique(np.sort(faces[solid], axis=1), axis=0, return_index=True)
        kept = solid[np.sort(unique)]
        model.mesh_face[start : start + len(kept)] = faces[kept]
        model.mesh_facenormal[start : start + len(kept)] = model.mesh_facenormal[start + kept]
        model.mesh_facetexcoord[start : start + len(kept)] = model.mesh_facetexcoord[start + kept]
        model.mesh_facenum[mesh] = len(kept)
