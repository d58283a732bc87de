"""Images, numbers, text and whole observations on their way into a policy and back."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import UserError
from model_core.embodiments import EMBODIMENTS, GR1, find_embodiment
from model_core.transforms import (
    SMALLEST_RANGE,
    InputTransform,
    Scaling,
    floored_dims,
    prepare_view,
    resize_with_pad,
    state_bins,
    text_tokens,
    tokens_of_sample,
    training_actions,
)
from model_core.types import Observation
from tests.model_core.samples import SPEC, card_of, spec_with, transform_of

Mode = Literal["quantile", "mean_std"]


# --- images -----------------------------------------------------------------------------------------


def test_an_image_of_the_right_size_stays_as_it_is() -> None:
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    assert np.array_equal(resize_with_pad(image, 16), image)


def test_halving_weighs_neighbours_as_a_triangle() -> None:
    """Each output pixel lies between two input pixels: weights 1, 3, 3, 1 over 8."""
    image = np.zeros((8, 8, 3), np.uint8)
    image[:, 4:] = 80
    assert resize_with_pad(image, 4)[0, :, 0].tolist() == [0, 10, 70, 80]


def test_aspect_is_kept_and_the_rest_is_black() -> None:
    out = resize_with_pad(np.full((8, 4, 3), 200, np.uint8), 16)
    assert out.shape == (16, 16, 3)
    assert (out[:, 4:12] == 200).all()
    assert not out[:, :4].any()
    assert not out[:, 12:].any()


@settings(max_examples=20)
@given(height=st.integers(2, 40), width=st.integers(2, 40), seed=st.integers(0, 9))
def test_a_picture_is_resampled_pixel_by_pixel(height: int, width: int, seed: int) -> None:
    """Beside the definition: a weighted mean of input pixels, near ones more, in double precision."""
    image, size = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8), 12
    scale = size / max(height, width)
    new_height, new_width = max(1, round(height * scale)), max(1, round(width * scale))

    def weights(num_in: int, num_out: int, at: int) -> np.ndarray:
        ratio = num_in / num_out
        distance = np.abs(np.arange(num_in) + 0.5 - (at + 0.5) * ratio)
        near = np.maximum(0, 1 - distance / max(1, ratio))
        return near / near.sum()

    out = resize_with_pad(image, size).astype(float)
    top, left = (size - new_height) // 2, (size - new_width) // 2
    for y in range(new_height):
        for x in range(new_width):
            expected = np.einsum(
                "y,x,yxc->c", weights(height, new_height, y), weights(width, new_width, x), image.astype(float)
            )
            assert np.abs(out[top + y, left + x] - expected).max() <= 0.5 + 1e-3


@settings(max_examples=20)
@given(height=st.integers(1, 40), width=st.integers(1, 40), size=st.integers(1, 32), value=st.integers(0, 255))
def test_a_flat_image_stays_flat(height: int, width: int, size: int, value: int) -> None:
    out = resize_with_pad(np.full((height, width, 3), value, np.uint8), size)
    assert set(np.unique(out)) <= {0, value}


@pytest.mark.parametrize(("shape", "dtype"), [((4, 4), np.uint8), ((4, 4, 3), np.float32), ((0, 4, 3), np.uint8)])
def test_what_is_no_rgb_image_is_refused(shape: tuple[int, ...], dtype: type) -> None:
    with pytest.raises(UserError, match="IMAGE-001"):
        resize_with_pad(np.zeros(shape, dtype), 4)


def test_grey_sight_shows_nothing() -> None:
    image = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    assert (prepare_view(image, {"image_size": 4, "sight": "grey"}) == 128).all()


# --- numbers ----------------------------------------------------------------------------------------


def test_quantiles_become_minus_one_and_one() -> None:
    scaling = Scaling.of({"q01": [1.0], "q99": [3.0]}, "quantile")
    assert scaling.normalise(np.array([[1.0], [2.0], [3.0], [4.0]])).ravel().tolist() == [-1.0, 0.0, 1.0, 2.0]


def test_mean_and_deviation() -> None:
    scaling = Scaling.of({"mean": [1.0], "std": [2.0]}, "mean_std")
    assert scaling.normalise(np.array([[5.0]])).item() == 2.0


@pytest.mark.parametrize("mode", ["quantile", "mean_std"])
def test_constant_dimensions_become_zero_and_come_back(mode: Mode) -> None:
    scaling = Scaling.of({"q01": [-1.5], "q99": [-1.5], "mean": [-1.5], "std": [0.0]}, mode)
    assert scaling.normalise(np.array([-1.5])).item() == 0.0
    assert scaling.denormalise(np.array([0.0])).item() == -1.5


@pytest.mark.parametrize("mode", ["quantile", "mean_std"])
def test_a_nearly_constant_dimension_neither_explodes_nor_goes_unnamed(mode: Mode) -> None:
    """1.5690 ± 0.0005: divided by its own range, a small surprise would become thousands."""
    rows = 1.5690 + 0.0005 * np.sin(np.arange(100))
    stats = {
        "mean": [rows.mean(), 0.0],
        "std": [rows.std(), 1.0],
        "q01": [np.quantile(rows, 0.01), -1.0],
        "q99": [np.quantile(rows, 0.99), 1.0],
    }
    assert floored_dims(stats, mode, ["wrist", "elbow"]) == ["wrist"]
    assert abs(Scaling.of(stats, mode).normalise(np.stack([rows, rows], 1))[:, 0]).max() < 0.5
    assert abs(Scaling.of(stats, mode).normalise(np.array([1.57 + SMALLEST_RANGE, 0.0]))[0]) < 10


@pytest.mark.parametrize("stats", [{"mean": [0.0], "std": [1.0]}, {"q01": [0.0], "q99": [float("nan")]}])
def test_statistics_that_are_missing_or_not_finite_are_refused(stats: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="STATS-001"):
        Scaling.of(stats, "quantile")


@pytest.mark.parametrize("name", EMBODIMENTS)
@pytest.mark.parametrize("mode", ["quantile", "mean_std"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_decode_undoes_normalise_for_every_robot(name: str, mode: Mode, seed: int) -> None:
    robot, rng = find_embodiment(name), np.random.default_rng(seed)
    transform = InputTransform(card_of(robot=robot), spec_with(normalisation=mode))
    proprio = rng.normal(size=(2, robot.state_dim)).astype(np.float32)
    actions = rng.normal(size=(2, 4, robot.action_dim)).astype(np.float32)
    back = transform.decode(transform.normalise_actions(actions, proprio), proprio)
    np.testing.assert_allclose(back, actions, atol=2e-6)


def test_a_state_far_outside_of_the_data_is_limited() -> None:
    assert transform_of().normalise_proprio(np.array([1e6, -1e6, 0.0, 2.0])).tolist() == [10.0, -10.0, 0.0, 1.0]


def test_recorded_humanoid_rows_normalise_to_moderate_numbers(shared_data: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(min((shared_data / "lerobot-v2.0-gr1-picknplace/data").glob("*/*.parquet")))
    actions, states = (np.stack(table[name].to_numpy()) for name in ("action", "observation.state"))
    learnt = training_actions(actions[:, None], states, GR1)[:, 0]
    stats = {"q01": np.quantile(learnt, 0.01, axis=0), "q99": np.quantile(learnt, 0.99, axis=0)}
    normalised = Scaling.of(stats, "quantile").normalise(learnt)
    assert np.isfinite(normalised).all()
    assert np.abs(normalised).max() < 20
    is_flat = (actions.std(axis=0) == 0) & ~np.array(GR1.delta_mask)
    flat = {name for name, constant in zip(GR1.action_names, is_flat, strict=True) if constant}
    assert flat <= set(floored_dims(stats, "quantile", GR1.action_names))


# --- text -------------------------------------------------------------------------------------------


def test_bins_of_a_state_cover_the_range_and_hold_what_is_outside() -> None:
    assert state_bins(np.array([-1.0, -2.0, 0.0, 1.0, 9.0, -1.0 + 1 / 128])) == [0, 0, 128, 255, 255, 1]


def test_text_holds_the_state_only_when_asked() -> None:
    spec = spec_with(inputs={"state": "text", "max_text_tokens": 12})
    card = card_of(spec)
    tokens = text_tokens("open the drawer", np.zeros(4), card)
    words = card["tokenizer"]["words"]
    assert [words[i] for i in tokens] == ["<task>", "open", "the", "drawer", "<state>", *["<128>"] * 4, "<action>"]
    assert len(text_tokens("open the drawer", None, card_of())) == 3
    with pytest.raises(UserError, match="TEXT-005"):
        text_tokens("open the drawer", None, card)


def test_too_long_an_instruction_is_refused_by_name() -> None:
    with pytest.raises(UserError) as caught:
        text_tokens("open the drawer and then close it once more again", None, card_of())
    assert caught.value.code == "TEXT-001"
    assert "open the drawer and then" in caught.value.where


# --- observations -----------------------------------------------------------------------------------


def observation(views: dict[str, np.ndarray] | None = None, **changes: Any) -> Observation:
    image = np.full((16, 16, 3), 7, np.uint8)
    fields = {"views": {"corner": image, "top": image + 1}, "proprio": np.zeros(4), "instruction": "open the drawer"}
    return Observation(**(fields | ({} if views is None else {"views": views}) | changes))


def test_views_come_in_slot_order_and_absent_ones_not_at_all() -> None:
    seen = observation()
    found = transform_of().encode([seen, observation(views={"corner": seen.views["corner"]}), observation(views={})])
    assert found.image_sample.tolist() == [0, 0, 1]
    assert found.image_view.tolist() == [0, 1, 1]
    assert found.images[:, 0, 0, 0].tolist() == [8, 7, 7]
    assert found.text_lengths.tolist() == [3, 3, 3]
    assert found.prefix_lengths.tolist() == [2 * 4 + 3 + 1, 4 + 3 + 1, 3 + 1]


def test_token_count_of_a_sample() -> None:
    assert tokens_of_sample(2, 3, SPEC) == 12
    assert tokens_of_sample(2, 3, spec_with(inputs={"state": "none"})) == 11


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (observation(views={"wrist": np.zeros((4, 4, 3), np.uint8)}), "INPUT-001"),
        (observation(proprio=np.zeros(5)), "INPUT-002"),
        (observation(proprio=np.array([0.0, np.nan, 0.0, 0.0])), "INPUT-002"),
    ],
)
def test_observations_of_another_robot_are_refused(seen: Observation, code: str) -> None:
    with pytest.raises(UserError, match=code):
        transform_of().encode([seen])
