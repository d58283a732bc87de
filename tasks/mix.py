"""The mix stage: preprocessed data sets as one, with statistics per robot and one vocabulary; no sample is copied."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from data_lake.files import read_bytes
from data_lake.held_out import check_apart
from data_lake.mixture import Component, write_mixture
from data_lake.mixture_card import mixed_card
from data_lake.refs import PreprocessedRef
from data_lake.samples import SampleTable
from data_lake.store import Attempt
from data_lake.words import counted
from model_core.embodiments import from_layout
from model_core.tokenizers import merge_tokenizers
from model_core.transforms import training_actions
from tasks.runtime import Runtime, Summary
from tasks.specs import MixStage


def mix(spec: MixStage, *preprocessed: PreprocessedRef, out: Attempt, runtime: Runtime) -> PreprocessedRef:
    """What stands for all of `preprocessed` downstream. Weights are not its business: changing them mixes nothing anew.

    Raises UserError PACK-011 for components that cannot be trained on together, or of which one trains on what another
    holds out.
    """
    tables = [SampleTable(runtime.path(each.uri)) for each in preprocessed]
    check_apart([table.folder for table in tables], spec.names)
    tokenizer, maps = merge_tokenizers([table.card["tokenizer"] for table in tables])
    card = mixed_card(tables, spec.names, tokenizer, _as_trained)
    if "file" in tokenizer:
        (out.path / tokenizer["file"]).write_bytes(read_bytes(tables[0].folder / tokenizer["file"]))
    named = zip(spec.names, preprocessed, maps, strict=True)
    components = [Component(name=name, uri=ref.uri, token_map=token_map) for name, ref, token_map in named]
    write_mixture(out.path, components, card)
    runtime.report(_summary(spec.names, preprocessed, card))
    return PreprocessedRef(
        uri=out.uri,
        fingerprint=out.fingerprint,
        num_samples=sum(each.num_samples for each in preprocessed),
        num_heldout=sum(each.num_heldout for each in preprocessed),
        num_views=sum(each.num_views for each in preprocessed),
    )


def _as_trained(layout: dict[str, Any]) -> Callable[..., np.ndarray]:
    return partial(training_actions, robot=from_layout(layout))


def _summary(names: tuple[str, ...], preprocessed: tuple[PreprocessedRef, ...], card: dict[str, Any]) -> Summary:
    robots = {each["embodiment"] for each in card["components"]}
    total = sum(each.num_samples for each in preprocessed)
    return Summary(
        line=f"{counted(total, 'sample')} of {counted(len(names), 'data set')} · {counted(len(robots), 'robot')}",
        table=[
            {"component": name, "robot": of["embodiment"], "samples": ref.num_samples, "held out": ref.num_heldout}
            for name, of, ref in zip(names, card["components"], preprocessed, strict=True)
        ],
    )
