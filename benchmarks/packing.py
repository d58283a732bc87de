"""Packing a million samples with lengths as vision-language-action data have them, beside TRL's packer and padding.

Ours is timed from the lengths to every sample's row; same work is proved by the digest of the sorted lengths that
came out, and no row may be longer than the capacity.
"""

import hashlib
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer import MAKE_IT, Peer, peers_python
from benchmarks.reporting import Target, result, spread
from data_lake.balance import assign
from data_lake.pack import pack_samples
from data_lake.packing import Packing, TokenCount

NUM_SAMPLES = 1_000_000
CAPACITY = 4096
TOKENS = TokenCount(tokens_per_view=256, state_tokens=0, action_horizon=50)
LONGEST = TOKENS.tokens_per_view * 3 + 200 + TOKENS.action_horizon  # what padding to the maximum pays for
PEER_ROUNDS, OURS_PER_ROUND = 3, 4
ROWS_PER_BLOCK = 4096
RANKS, ROWS_PER_RANK, BALANCED_STEPS = 64, 8, 20
BATCH = 8
PACKAGES = ("numpy",)


def vla_lengths(num_samples: int) -> np.ndarray:
    """1 to 3 views of 256 tokens, texts of 20 to 200, 50 actions: uniform."""
    random = np.random.default_rng(0)
    views, texts = random.integers(1, 4, num_samples), random.integers(20, 201, num_samples)
    return TOKENS.length(views, texts)


def main(lake: Path, home: Path) -> dict[str, Any]:
    """`bench packing`."""
    lengths, ids = vla_lengths(NUM_SAMPLES), np.arange(NUM_SAMPLES)
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    python = peers_python()
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "lengths.npy", lengths)
        order = {"lengths_file": f"{folder}/lengths.npy", "capacity": CAPACITY}
        for _ in range(PEER_ROUNDS):  # interleaved
            ours += [_ours(ids, lengths) for _ in range(OURS_PER_ROUND)]
            if python is not None:
                with Peer(python, "trl_packing.py") as peer:
                    theirs.append(peer.ask(**order))
    ours = ours[1:]  # the first one pays for the first touch of memory
    assert {one["work"] for one in (*ours, *theirs)} == {_digest(lengths)} and all(one["fits"] for one in theirs)
    seconds = statistics.median(one["seconds"] for one in ours)
    trl = statistics.median(one["seconds"] for one in theirs) if theirs else None
    balance = _balance(pack_samples(ids, lengths, capacity=CAPACITY, tokens=TOKENS))
    targets = [
        Target(name="seconds_1e6", value=seconds, target=0.5, op="<="),
        Target(name="fill_4096", value=ours[0]["fill"], target=0.998, op=">="),
        Target(
            name="speedup_vs_trl",
            value=trl / seconds if trl else None,
            target=50,
            op=">=",
            note="" if trl else MAKE_IT,
        ),
        Target(
            name="balance",
            value=max(balance.values()),
            target=1.02,
            op="<=",
            note=f"{RANKS} ranks of {ROWS_PER_RANK} rows, worst of {BALANCED_STEPS} steps",
        ),
    ]
    contenders = {
        "vlaloop": {"seconds": spread([one["seconds"] for one in ours]), "fill": ours[0]["fill"]},
        "trl": {"seconds": spread([one["seconds"] for one in theirs]), "fill": theirs[0]["fill"]}
        if theirs
        else MAKE_IT,
        "pad_to_longest_of_8": {"fill": _padded_fill(lengths)},
        "pad_to_maximum": {"fill": float(lengths.mean() / LONGEST)},
        "balance": balance,
    }
    return result("packing", targets, contenders, {"vlaloop": ours, "trl": theirs}, PACKAGES)


def _ours(ids: np.ndarray, lengths: np.ndarray) -> dict[str, Any]:
    """Plan, then who sits in which row of a whole epoch, block after block as training asks for them."""
    started = time.perf_counter()
    packing = pack_samples(ids, lengths, capacity=CAPACITY, tokens=TOKENS)
    planned = time.perf_counter()
    sizes = _epoch(packing)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "plan_s": planned - started,
        "rows": packing.num_rows,
        "fill": packing.fill_rate,
        "work": _digest(sizes),
    }


def _epoch(packing: Packing) -> np.ndarray:
    """Lengths of all samples in the order of the rows of epoch 0."""
    blocks, rows = [], 0
    while rows < packing.num_rows:
        _, lengths_N, ends_R = packing.members(0, rows // ROWS_PER_BLOCK, ROWS_PER_BLOCK)
        left = packing.num_rows - rows
        blocks.append(lengths_N[: ends_R[min(left, ROWS_PER_BLOCK) - 1]])
        rows += ROWS_PER_BLOCK
    return np.concatenate(blocks)


def _digest(lengths: np.ndarray) -> str:
    return hashlib.sha256(np.sort(lengths).astype(np.int64).tobytes()).hexdigest()


def _padded_fill(lengths: np.ndarray) -> float:
    batches = lengths.reshape(-1, BATCH)
    return float(batches.sum() / (batches.max(axis=1) * BATCH).sum())


def _balance(packing: Packing) -> dict[str, float]:
    """Of the worst of some steps: the most of a rank over the mean of all."""
    worst = {"tokens": 0.0, "squares": 0.0}
    for step in range(BALANCED_STEPS):
        _, lengths_N, ends_R = packing.members(0, step, RANKS * ROWS_PER_RANK)
        shares = assign(lengths_N, ends_R, RANKS)
        begins_R = np.concatenate(([0], ends_R[:-1]))
        for name, cost_N in (("tokens", lengths_N), ("squares", lengths_N**2)):
            cost_R = np.add.reduceat(cost_N, begins_R)
            loads = np.array([cost_R[share].sum() for share in shares])
            worst[name] = max(worst[name], float(loads.max() / loads.mean()))
    return worst
