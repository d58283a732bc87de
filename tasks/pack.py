"""The pack stage: which samples share a row of the token budget, as patterns on the histogram of lengths."""

from dataclasses import replace

import lance
import numpy as np

from data_lake.packing import Packing, TokenCount, pack_samples
from data_lake.refs import PackedRef, PreprocessedRef
from data_lake.store import Attempt
from model_core.specs import PolicySpec
from tasks.runtime import Runtime, Summary
from tasks.specs import PackStage


def token_count(policy: PolicySpec) -> TokenCount:
    """How many tokens a sample of this policy has."""
    return TokenCount(
        tokens_per_view=policy.tokens_per_view,
        state_tokens=int(policy.inputs.state == "token"),
        action_horizon=policy.action_horizon,
    )


def pack(spec: PackStage, preprocessed: PreprocessedRef, *, out: Attempt, runtime: Runtime) -> PackedRef:
    """Pack the training samples into rows of `pack.tokens_per_row` tokens."""
    samples = lance.dataset(str(runtime.path(preprocessed.uri) / "samples.lance"))
    table = samples.to_table(columns=["split", "num_views", "text_tokens"])
    tokens = token_count(spec.policy)
    lengths = tokens.length(
        table["num_views"].to_numpy(), table["text_tokens"].combine_chunks().value_lengths().to_numpy()
    )
    ids = np.flatnonzero(table["split"].to_numpy() == 0)
    packing = pack_samples(ids, lengths[ids], capacity=spec.pack.tokens_per_row, tokens=tokens)
    packing = replace(packing, shuffle=spec.pack.shuffle)
    packing.save(out.path)
    runtime.report(_summary(packing))
    return PackedRef(
        uri=out.uri,
        fingerprint=out.fingerprint,
        num_samples=packing.num_samples,
        num_rows=packing.num_rows,
        tokens_per_row=packing.capacity,
        fill_rate=packing.fill_rate,
    )


def _summary(packing: Packing) -> Summary:
    return Summary(
        line=f"{packing.num_samples:,} samples → {packing.num_rows:,} rows · fill {100 * packing.fill_rate:.1f} %",
        table=[
            {"tokens": int(length), "samples": int(count)}
            for length, count in zip(packing.lengths_C, packing.counts_C, strict=True)
        ],
    )
