"""The real loop, built once for the whole session."""

from pathlib import Path

import pytest

from tests.contracts.built import Built
from tests.contracts.recorded import Recorded


@pytest.fixture(scope="session")
def built(smoke_lake: tuple[Path, Path]) -> Built:
    return Built.open(*smoke_lake)


@pytest.fixture(scope="session")
def recorded(built: Built) -> list[Recorded]:
    return built.recorded()
