"""The pack stage: which samples share a row of the token budget, as patterns on the histogram of lengths."""

from dataclasses import replace

import lance
import numpy as np

from data_lake.files import LakePath
from data_lake.mixture import sample_folders
from data_lake.pack import pack_runs, pack_samples, runs_of
from data_lake.packing import Packing, TokenCount
from data_lake.refs import PackedRef, PreprocessedRef
from data_lake.store import Attempt
from data_lake.words import counted
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
    """Pack the training samples into rows of `pack.tokens_per_row` tokens, a mixture's as often as `weights` say."""
    tokens = token_count(spec.policy)
    parts = [_lengths(folder, tokens) for folder in sample_folders(runtime.path(preprocessed.uri))]
    if len(parts) == 1:
        (lengths, ids), *_ = parts
        packing = pack_samples(ids, lengths[ids], capacity=spec.pack.tokens_per_row, tokens=tokens)
    else:
        packing = _mixed(parts, spec, tokens)
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


def _lengths(folder: LakePath, tokens: TokenCount) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of all samples there (N,), and which of them are for training."""
    columns = ["split", "num_views", "text_tokens"]
    table = lance.dataset(str(folder / "samples.lance")).to_table(columns=columns)
    num_text = table["text_tokens"].combine_chunks().value_lengths().to_numpy()
    return tokens.length(table["num_views"].to_numpy(), num_text), np.flatnonzero(table["split"].to_numpy() == 0)


def _mixed(parts: list[tuple[np.ndarray, np.ndarray]], spec: PackStage, tokens: TokenCount) -> Packing:
    """The samples of all parts; ids of one follow those of the one before."""
    firsts = np.cumsum([len(lengths) for lengths, _ in parts]) - [len(lengths) for lengths, _ in parts]
    runs = [runs_of(ids + first, lengths[ids]) for (lengths, ids), first in zip(parts, firsts, strict=True)]
    firsts_U, counts_U, lengths_U = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
    return pack_runs(
        firsts_U,
        counts_U,
        lengths_U,
        capacity=spec.pack.tokens_per_row,
        tokens=tokens,
        component_U=np.repeat(np.arange(len(runs)), [len(each[0]) for each in runs]),
        weights=spec.weights,
    )


def _summary(packing: Packing) -> Summary:
    packed = f"{counted(packing.num_samples, 'sample')} → {counted(packing.num_rows, 'row')}"
    line = f"{packed} · fill {100 * packing.fill_rate:.1f} %"
    if (weighing := packing.weighing) is not None:
        places = [weighing.places_of(component) for component in range(int(weighing.component_S.max()) + 1)]
        line += f" · an epoch has {' + '.join(f'{each:,}' for each in places)}"
    return Summary(
        line=line,
        table=[
            {"tokens": int(length), "samples": int(count)}
            for length, count in zip(packing.lengths_C, packing.counts_C, strict=True)
        ],
    )
