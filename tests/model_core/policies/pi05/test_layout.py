"""Where tokens of a batch stand: order in a prefix, positions, and the meeting of prefix and suffix."""

import torch

from model_core.policies.pi05.layout import LengthClass, PrefixLayout, SuffixLayout, assemble_prefix, join


def layout() -> PrefixLayout:
    """Two samples of one view of two patches, one word and a state; then one sample of two words and a state."""
    return PrefixLayout.of(
        (
            LengthClass(num_samples=2, num_views=1, num_text=1, num_state=1, tokens_per_view=2),
            LengthClass(num_samples=1, num_views=0, num_text=2, num_state=1, tokens_per_view=2),
        )
    )


def test_positions_begin_anew_in_every_segment() -> None:
    found = layout()
    assert found.segments.lengths == (4, 4, 3)
    assert found.positions_T.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2]
    assert found.num_samples == 3


def test_views_come_first_then_text_then_state() -> None:
    views = torch.tensor([[1.0, 2.0], [3.0, 4.0]])[..., None]
    words = torch.tensor([10.0, 20.0, 30.0, 31.0])[:, None]
    states = torch.tensor([100.0, 200.0, 300.0])[:, None]
    found = assemble_prefix(layout(), views, words, states)
    assert found[:, 0].tolist() == [1, 2, 10, 100, 3, 4, 20, 200, 30, 31, 300]


def test_suffixes_go_on_where_their_prefix_ends() -> None:
    found = SuffixLayout.of(layout(), num_draws=2, horizon=2)
    assert found.segments.lengths == (2,) * 6
    assert found.joint.lengths == (6, 6, 6, 6, 5, 5)
    assert found.positions_MH.tolist() == [[4, 5]] * 4 + [[3, 4]] * 2


def test_every_draw_meets_its_own_prefix() -> None:
    prefix, suffix = layout(), SuffixLayout.of(layout(), num_draws=2, horizon=1)
    tokens = torch.arange(11.0)[:, None]
    draws = 100 + torch.arange(6.0)[:, None, None]
    found = join(prefix, suffix, tokens, draws)[:, 0].tolist()
    assert found == [*range(4), 100, *range(4), 101, *range(4, 8), 102, *range(4, 8), 103, 8, 9, 10, 104, 8, 9, 10, 105]


def test_joining_has_exact_gradients() -> None:
    prefix, suffix = layout(), SuffixLayout.of(layout(), num_draws=2, horizon=1)
    tokens = torch.randn(11, 2, dtype=torch.float64, requires_grad=True)
    draws = torch.randn(6, 1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: join(prefix, suffix, a, b), (tokens, draws))
