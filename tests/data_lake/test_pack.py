"""From lengths to a packing: by the histogram alone, runs standing for their samples, too long ones named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.pack import pack_runs, pack_samples
from errors import UserError
from tests.data_lake.test_packing import TOKENS, packed


def test_planning_a_million_takes_the_histogram_only() -> None:
    """Lengths as vision-language-action data have them (1 to 3 views of 256, texts of 20 to 200, 50 actions)."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 4, 1_000_000) * 256 + random.integers(20, 201, 1_000_000) + 50
    packing = packed(lengths, 4096)
    assert packing.fill_rate >= 0.999
    assert len(packing.rows_P) < 3000  # patterns, for 543 lengths


def test_a_sample_longer_than_a_row_is_named() -> None:
    with pytest.raises(UserError) as caught:
        packed([10, 70, 90], first_id=500)
    assert caught.value.code == "PACK-001"
    assert "sample 501: 70 tokens" in caught.value.where
    assert "90 or more" in caught.value.next_step


@given(
    runs=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=30),
    seed=st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_runs_are_the_samples_that_they_stand_for(runs: list[tuple[int, int, int]], seed: int) -> None:
    """Runs of (samples, tokens), some with a gap of ids before them."""
    ids, lengths, first = [], [], 0
    for count, length, gap in runs:
        ids += range(first + gap, first + gap + count)
        lengths += [length] * count
        first += gap + count
    firsts = [ids[end - count] for end, (count, _, _) in zip(np.cumsum([r[0] for r in runs]), runs, strict=True)]
    counts, tokens = (np.array([run[place] for run in runs]) for place in (0, 1))
    of_runs = pack_runs(np.array(firsts), counts, tokens, capacity=12, tokens=TOKENS)
    of_samples = pack_samples(np.array(ids), np.array(lengths), capacity=12, tokens=TOKENS)
    assert sorted(of_runs.ids.tolist()) == ids and of_runs.ids.tolist() == of_samples.ids.tolist()
    for step in range(3):
        for one, other in zip(of_runs.members(seed, step, 4), of_samples.members(seed, step, 4), strict=True):
            assert one.tolist() == other.tolist()
