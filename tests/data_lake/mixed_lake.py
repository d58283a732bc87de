"""Fabricated data sets, each preprocessed by itself, and a mixture of them, in a lake of a test's own."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from data_lake.mixture import Component, MixedSamples, open_samples, write_mixture
from data_lake.mixture_card import mixed_card
from data_lake.preprocess import preprocess_view
from data_lake.samples import SampleTable
from data_lake.view import read_view
from tests.data_lake import model_functions
from tests.data_lake.lake_fixture import RECORDED, Recorded, request_for, write_dataset, write_view

SECOND = [Recorded(length=7, instruction="lift the lid"), Recorded(length=8, views=(), instruction="open it")]


def made(
    lake: Path, name: str, recorded: list[Recorded], *, dim: int = 4, embodiment: str = "arm", **changes: Any
) -> str:
    """What preprocessing makes of fabricated recordings, in a slot of the lake; its uri."""
    dataset, view_folder, uri = lake / "datasets" / name, lake / "ingest" / name, f"preprocess/{name}"
    write_view(view_folder, recorded, write_dataset(dataset, recorded, dim=dim))
    found = json.loads((view_folder / "episodes.json").read_text()) | {"embodiment": embodiment}
    (view_folder / "episodes.json").write_text(json.dumps(found))
    (lake / uri).mkdir(parents=True)
    request = request_for(layout={"delta_mask": [False] * dim}, **changes)
    preprocess_view(read_view(view_folder), dataset, request, lake / uri)
    return uri


def mixed(lake: Path, *uris: str, slot: str = "m") -> MixedSamples:
    """Vocabularies of words as model_functions has them: sorted, without marks."""
    tables = [SampleTable(lake / uri) for uri in uris]
    words = sorted({word for table in tables for word in table.card["tokenizer"]["words"]})
    maps = [[words.index(word) for word in table.card["tokenizer"]["words"]] for table in tables]
    card = mixed_card(tables, uris, {"kind": "words", "words": words}, as_trained)
    folder = lake / "mix" / slot / "attempts" / "1"
    folder.mkdir(parents=True)
    components = [Component(name=uri, uri=uri, token_map=ids) for uri, ids in zip(uris, maps, strict=True)]
    write_mixture(folder, components, card)
    found = open_samples(folder)
    assert isinstance(found, MixedSamples)
    return found


def as_trained(layout: dict[str, Any]) -> Any:
    return partial(model_functions.training_actions, robot=model_functions.robot(layout))


def two_robots(lake: Path) -> MixedSamples:
    """25 samples of an arm with 4 dimensions, of which the last 4 are held out, and 8 of a cart with 6 dimensions."""
    first = made(lake, "arm", RECORDED, heldout_episodes=(16,))
    return mixed(lake, first, made(lake, "cart", SECOND, dim=6, embodiment="cart"))
