"""What the loop made of the recipe `smoke`, opened stage by stage for the tests of its seams."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_lake.loader import Loader
from data_lake.packing import Packing
from data_lake.samples import Batch
from data_lake.store import records
from tests.contracts.recorded import Recorded, read


@dataclass(frozen=True)
class Built:
    """records: by stage."""

    lake: Path
    home: Path
    records: dict[str, dict[str, Any]]

    @classmethod
    def open(cls, lake: Path, home: Path) -> "Built":
        return cls(lake, home, {record["stage"]: record for record in records(lake)})

    def ref(self, stage: str) -> dict[str, Any]:
        return self.records[stage]["ref"]

    def folder(self, stage: str) -> Path:
        """What the stage's ref points at."""
        return self.lake / self.ref(stage)["uri"]

    def recorded(self) -> list[Recorded]:
        """The collected episodes, by another reader than the loop's."""
        (info,) = self.folder("collect").rglob("meta/info.json")
        return read(info.parents[1])

    def loader(self, rows_per_step: int = 8) -> Loader:
        packing = Packing.load(self.folder("pack"))
        return Loader(self.folder("preprocess"), packing, seed=0, rows_per_step=rows_per_step)

    def batch(self) -> Batch:
        """A step's worth of packed samples, as training gets them."""
        return self.loader().batch(0)
