"""What tests see of bags: episodes, their columns, codes and pictures."""

from pathlib import Path
from typing import Any

import numpy as np

from data_lake.examine import Examined, Tally, examine
from data_lake.sources.bags import RosBags
from data_lake.sources.episode import Episode, Pictures
from data_lake.specs import ReadSpec
from tests.data_lake.bag_recordings import COMMAND, READ

CAMERA = "observation.images.front"
SIMPLE = ReadSpec(fps="10", state=(f"{COMMAND}.data",), action=(f"{COMMAND}.data",), instruction="=go", max_age_s=1.0)


def read(path: Path, spec: ReadSpec = READ) -> list[Episode]:
    return list(RosBags(path, spec).episodes())


def codes(episode: Episode) -> list[str]:
    return [item.code for item in episode.findings]


def columns(episode: Episode) -> dict[str, list[Any]]:
    assert episode.rows is not None, episode.findings
    return episode.rows.to_pydict()


def frames(episode: Episode, camera: str = CAMERA) -> list[np.ndarray]:
    view = episode.views[camera]
    assert isinstance(view, Pictures)
    return list(view.frames())


def examined(path: Path, spec: ReadSpec = READ) -> list[Examined]:
    return list(examine(RosBags(path, spec), workers=2, tally=Tally()))
