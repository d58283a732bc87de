"""docs/data.md: its examples run, one after the other, and give what the text says of them."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contracts.built import Built

EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def names(built: Built, root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples leave behind, run as one script where the lake is `./lake`."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "lake").symlink_to(built.lake)
    examples = EXAMPLE.findall((root / "docs" / "data.md").read_text())
    assert len(examples) == 4
    (folder / "examples.py").write_text("\n".join(examples))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return runpy.run_path("examples.py")


def test_a_version_has_the_episodes_that_were_collected(names: dict[str, Any], built: Built) -> None:
    assert names["version"].name == "smoke@1"
    assert names["version"].manifest.num_episodes == built.ref("collect")["num_episodes"]
    assert names["rows"]["index"] == [names["begin"], names["end"] - 1]


def test_frames_come_in_the_order_asked_for(names: dict[str, Any]) -> None:
    frames, reader = names["frames"], names["reader"]
    assert frames.columns["index"].tolist() == [names["end"] - 1, names["begin"], len(reader) - 1]
    assert frames.mask_NH[0].tolist() == [True] + [False] * 7
    assert frames.columns["action"][0, 0].tolist() == np.float32(names["rows"]["action"][1]).tolist()
    assert set(frames.images) == set(names["version"].cameras) and len(frames.images) == 2
    assert all(images.dtype == np.uint8 and images.any() for images in frames.images.values())


def test_the_view_and_the_packing_are_those_of_the_loop(names: dict[str, Any], built: Built) -> None:
    assert len(names["view"].episodes) == built.ref("ingest")["num_episodes"]
    assert names["packing"].num_rows == built.ref("pack")["num_rows"]
    assert names["preprocessed"]["uri"] == built.ref("preprocess")["uri"]
    again = built.loader(rows_per_step=2).batch(8)
    assert names["batch"].step == 8 and names["batch"].sample_ids.tolist() == again.sample_ids.tolist()
