"""Every attention of the table is the oracle, forward and backward; no segment sees another."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from errors import UserError
from lookup import lookup
from model_core.attention import ATTENTION
from model_core.attention.reference import attend as oracle
from model_core.attention.segments import Attend, Segments, runs

ON_CPU = ("reference", "sdpa_segments")
Lengths = list[tuple[int, int]]  # of the segments in q and in k
LENGTHS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=7)


def tensors(lengths: Lengths, heads: int, kv_heads: int) -> tuple[list[Tensor], list[Segments]]:
    source = torch.Generator().manual_seed(0)
    q, k = Segments.of([q for q, _ in lengths]), Segments.of([k for _, k in lengths])
    shapes = ((q.num_tokens, heads, 8), (k.num_tokens, kv_heads, 8), (k.num_tokens, kv_heads, 8))
    return [torch.randn(shape, generator=source, requires_grad=True) for shape in shapes], [q, k]


def with_gradients(attend: Attend, made: list[Tensor], segments: list[Segments]) -> list[Tensor]:
    out = attend(*made, *segments)
    weights = torch.linspace(-1, 1, max(1, out.numel()))[: out.numel()].view_as(out)
    total = (out * weights).sum() + sum(0 * x.sum() for x in made)  # where nothing is attended to, gradients are 0
    return [out, *torch.autograd.grad(total, made)]


@pytest.mark.parametrize("name", ON_CPU)
@settings(max_examples=25)
@given(lengths=LENGTHS, heads=st.sampled_from([(4, 4), (4, 2), (4, 1)]))
def test_equals_the_oracle_forward_and_backward(name: str, lengths: Lengths, heads: tuple[int, int]) -> None:
    made, segments = tensors(lengths, *heads)
    expected = with_gradients(oracle, made, segments)
    for left, right in zip(with_gradients(lookup(ATTENTION, name, "attention"), made, segments), expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_the_oracle_by_head() -> None:
    """Two segments; the second query has equal scores for both of its keys, so it gets the mean of their values."""
    q = torch.zeros(2, 1, 2)
    k = torch.zeros(3, 1, 2)
    v = torch.tensor([[7.0, 7.0], [1.0, 3.0], [3.0, 5.0]])[:, None]
    out = oracle(q, k, v, Segments.of([1, 1]), Segments.of([1, 2]))
    assert out[:, 0].tolist() == [[7.0, 7.0], [2.0, 4.0]]


@pytest.mark.parametrize("name", ON_CPU)
@pytest.mark.parametrize("changed", [0, 1, 2])
def test_a_changed_segment_leaves_the_others_bit_for_bit(name: str, changed: int) -> None:
    lengths = [(3, 5), (5, 3), (3, 5)]
    attend = lookup(ATTENTION, name, "attention")
    made, segments = tensors(lengths, 2, 2)
    before = with_gradients(attend, made, segments)
    moved = [x.detach().clone() for x in made]
    spans = [_span(segments[0], changed), _span(segments[1], changed), _span(segments[1], changed)]
    for x, span in zip(moved, spans, strict=True):
        x[span] += 100.0
    after = with_gradients(attend, [x.requires_grad_() for x in moved], segments)
    for left, right, span in zip(before, after, [spans[0], *spans], strict=True):
        kept = np.delete(np.arange(len(left)), np.arange(len(left))[span])
        assert torch.equal(left[kept], right[kept])


def test_segments_without_keys_give_zeros() -> None:
    made, segments = tensors([(2, 0), (0, 3)], 2, 1)
    for name in ON_CPU:
        assert not lookup(ATTENTION, name, "attention")(*made, *segments).any()


def test_runs_join_equal_neighbours() -> None:
    assert runs(Segments.of([2, 2, 3, 2]), Segments.of([4, 4, 4, 4])) == [(2, 2, 4), (1, 3, 4), (1, 2, 4)]
    with pytest.raises(ValueError, match="2 segments of q, 1 of k"):
        runs(Segments.of([1, 1]), Segments.of([1]))


def test_boundaries_are_running_sums() -> None:
    found = Segments.of([3, 0, 5])
    assert (found.cu.tolist(), found.lengths, found.longest, found.num_tokens) == ([0, 3, 3, 8], (3, 0, 5), 5, 8)


@pytest.mark.parametrize("name", ["torch_varlen", "flash_attn"])
def test_kernels_for_cuda_say_so_elsewhere(name: str) -> None:
    made, segments = tensors([(2, 3)], 2, 2)
    with pytest.raises(UserError) as caught:
        lookup(ATTENTION, name, "attention")(*made, *segments)
    assert caught.value.code == "ATTN-001"
    assert "sdpa_segments" in caught.value.next_step


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["torch_varlen", "flash_attn"])
def test_kernels_for_cuda_equal_the_oracle(name: str) -> None:
    if name == "flash_attn":
        pytest.importorskip("flash_attn")
    lengths = [(3, 40), (16, 57), (1, 1)]
    source = torch.Generator().manual_seed(0)
    q, k = Segments.of([3, 16, 1], "cuda"), Segments.of([40, 57, 1], "cuda")
    sizes = [(sum(q for q, _ in lengths), 4), (sum(k for _, k in lengths), 2), (sum(k for _, k in lengths), 2)]
    made = [torch.randn(n, h, 64, generator=source).to("cuda", torch.bfloat16).requires_grad_() for n, h in sizes]
    exact = [x.detach().float().requires_grad_() for x in made]
    out, expected = lookup(ATTENTION, name, "attention")(*made, q, k), oracle(*exact, q, k)
    found = [out, *torch.autograd.grad(out.square().sum(), made)]
    wanted = [expected, *torch.autograd.grad(expected.square().sum(), exact)]
    for left, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(left.float(), right, rtol=3e-2, atol=3e-2)


def _span(segments: Segments, index: int) -> slice:
    return slice(int(segments.cu[index]), int(segments.cu[index + 1]))
