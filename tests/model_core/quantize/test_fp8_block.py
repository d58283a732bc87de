"""The block format against an independent reference in numpy, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import UserError
from model_core.quantize.fp8_block import dequantise, quantise


def e4m3_values() -> np.ndarray:
    """The numbers of codes 0 to 126 (s=0): 4 exponent bits with bias 7, 3 mantissa bits; code 127 is NaN."""
    codes = np.arange(127)
    exponent, mantissa = codes >> 3, codes & 7
    return np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))


VALUES = e4m3_values()


def nearest_code(x: np.ndarray) -> np.ndarray:
    """The code of the nearest value, ties to the even code, with the sign in bit 7."""
    size = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(VALUES, size), 1, 126)
    below = above - 1
    to_above, to_below = VALUES[above] - size, size - VALUES[below]
    code = np.where((to_above < to_below) | ((to_above == to_below) & (above % 2 == 0)), above, below)
    return (code + 128 * np.signbit(x)).astype(np.uint8)


def reference(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out_dim, in_dim = weight.shape
    scale = np.empty((-(-out_dim // 128), -(-in_dim // 128)), np.float32)
    codes = np.empty(weight.shape, np.uint8)
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            block = weight[i * 128 : (i + 1) * 128, j * 128 : (j + 1) * 128]
            amax = np.abs(block).max()
            scale[i, j] = max(amax / np.float32(448), np.finfo(np.float32).tiny) if amax else 1.0
            scaled = np.clip(block / scale[i, j], -448, 448)
            codes[i * 128 : (i + 1) * 128, j * 128 : (j + 1) * 128] = nearest_code(scaled)
    return codes, scale


def check(weight: np.ndarray) -> None:
    float8, scale = quantise(torch.from_numpy(weight))
    codes, expected_scale = reference(weight)
    assert float8.dtype == torch.float8_e4m3fn and tuple(float8.shape) == weight.shape
    assert scale.dtype == torch.float32 and scale.ndim == 2
    np.testing.assert_array_equal(scale.numpy(), expected_scale)
    np.testing.assert_array_equal(float8.view(torch.uint8).numpy(), codes)
    back = dequantise(float8, scale).numpy()
    assert np.isfinite(back).all()
    biggest = np.repeat(np.repeat(expected_scale, 128, 0), 128, 1)[: weight.shape[0], : weight.shape[1]] * 448
    # half a step: 2^-4 of the value among normals, 2^-10 in units of the multiplier below them
    assert (np.abs(back - weight) <= np.maximum(np.abs(weight) / 16, biggest / 448 * 2.0**-10) * 1.0001).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**32 - 1), st.floats(-30, 30))
def test_bit_exact_with_the_reference_for_any_shape_and_size(
    out_dim: int, in_dim: int, seed: int, power: float
) -> None:
    normal = np.random.default_rng(seed).standard_normal((out_dim, in_dim))
    check((normal * 10.0**power).astype(np.float32))


def test_codes_of_known_numbers() -> None:
    weight = np.zeros((1, 5), np.float32)
    weight[0] = [448.0, -1.0, 17.0, 0.0, 19.0]  # 17 and 19 lie between 16, 18, 20: ties go to the even code
    float8, scale = quantise(torch.from_numpy(weight))
    assert scale.tolist() == [[1.0]]
    assert float8.to(torch.float32).tolist() == [[448.0, -1.0, 16.0, 0.0, 20.0]]


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("zeros", np.zeros((130, 5), np.float32)),
        ("one_zero_block", np.pad(np.ones((128, 128), np.float32), ((0, 0), (0, 128)))),
        ("outlier", np.where(np.arange(128 * 128).reshape(128, 128) == 77, 1e30, 1e-3).astype(np.float32)),
        ("subnormal", np.full((3, 3), 1e-41, np.float32)),
        ("smallest", np.full((2, 2), np.float32(1e-45))),
        ("bf16_subnormal", torch.full((4, 4), 9.2e-41, dtype=torch.bfloat16).float().numpy()),
        ("largest", np.full((2, 2), np.finfo(np.float32).max)),
        ("ragged", np.arange(129 * 257, dtype=np.float32).reshape(129, 257)),
        ("negative_zero", np.array([[-0.0, 1.0]], np.float32)),
    ],
)
def test_edges(name: str, weight: np.ndarray) -> None:
    check(weight)


def test_a_block_of_zeros_has_the_multiplier_one_and_one_column_keeps_two_dimensions() -> None:
    assert quantise(torch.zeros(256, 1))[1].tolist() == [[1.0], [1.0]]


def test_bfloat16_weights_are_quantised_from_their_exact_values() -> None:
    weight = torch.randn(40, 40, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    left, right = quantise(weight), quantise(weight.float())
    assert torch.equal(left[0].view(torch.uint8), right[0].view(torch.uint8)) and torch.equal(left[1], right[1])


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_is_refused_with_the_layers_name(bad: float) -> None:
    weight = torch.ones(3, 3)
    weight[1, 1] = bad
    with pytest.raises(UserError, match=r"EXPORT-002: prefix.0.mlp has 1 values"):
        quantise(weight, "prefix.0.mlp")


def test_a_vector_has_no_blocks() -> None:
    with pytest.raises(UserError, match="EXPORT-002: norm has 1 dimensions"):
        quantise(torch.ones(3), "norm")


def test_multipliers_along_the_wrong_axis_are_refused() -> None:
    float8, scale = quantise(torch.randn(300, 100))
    with pytest.raises(UserError, match="EXPORT-003"):
        dequantise(float8, scale.T)
