"""A stand-in for an attempt at a slot: a folder, and a count of how often it was checked."""

from dataclasses import dataclass, field
from pathlib import Path

from tasks.runtime import Report, Runtime


@dataclass(slots=True)
class Desk:
    """Where a stage function writes in a test. `number`: of the attempt; earlier ones lie beside it."""

    lake: Path
    stage: str
    number: int = 1
    num_checks: int = 0
    reports: list[Report] = field(default_factory=list)
    fail_at_check: int | None = None
    fingerprint: str = "f"

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True)

    @property
    def slot(self) -> Path:
        return self.lake / self.stage / self.fingerprint

    @property
    def uri(self) -> str:
        return f"{self.stage}/{self.fingerprint}/attempts/{self.number}"

    @property
    def path(self) -> Path:
        return self.lake / self.uri

    @property
    def earlier(self) -> list[Path]:
        return [self.slot / "attempts" / str(number) for number in range(self.number - 1, 0, -1)]

    def check(self) -> None:
        self.num_checks += 1
        if self.num_checks == self.fail_at_check:
            raise InterruptedError("stopped by the test")

    def runtime(self, workers: int) -> Runtime:
        return Runtime(lake=self.lake, home=self.lake, run_id="r", workers=workers, sink=self.reports.append)
