"""`up` and `down`: the services on this machine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from data_lake.mirror import mirror_of
from flows.deploy import schedules
from flows.places import Places
from flows.screen import DONE, Screen, seconds
from flows.services import up as services
from flows.services.up import Say, Status

PLAIN_EVERY_S = 5.0
MARKS = {"started": "●", "restarted": "●", "running": "○", "stopped": "●", "down": "○"}


def up(where: Places, screen: Screen) -> int:
    """Start what is missing, wait until all is healthy, print the addresses."""
    with _progress(screen) as say:
        rows = services.up(where, say)
    _table(rows, screen)
    timed = " · ".join(f"{name} at {cron}" for name, cron in schedules().items())
    screen.line(f"  runs by itself (cron, UTC): {timed}; pause them in Prefect, under Deployments")
    screen.line("  stop with ./vlaloop down; the services outlive this terminal")
    screen.answer({"command": "up", "ok": True, "result": {row.name: asdict(row) for row in rows}})
    return DONE


def down(where: Places, screen: Screen) -> int:
    """Stop exactly what `up` started."""
    with _progress(screen) as say:
        rows = services.down(where.home, say)
    _table(rows, screen)
    if not rows:
        screen.line("nothing was up")
    for slot, job_id in _jobs(mirror_of(where.lake, where.home)).items():
        screen.line(f"  training {slot[:14]} goes on as job {job_id[:8]}: Retry, or the same run, attaches to it;")
        screen.line("  cancel its flow run in Prefect, or Ctrl-C that run, to end it")
    screen.answer({"command": "down", "ok": True, "result": {row.name: asdict(row) for row in rows}})
    return DONE


def _jobs(mirror: Path) -> dict[str, str]:
    """Training jobs that go on without services; torch is imported only where there was one at all."""
    if not any(mirror.glob("train/*/job.json")):
        return {}
    from tasks.train import running_jobs

    return running_jobs(mirror)


def _table(rows: list[Status], screen: Screen) -> None:
    for row in rows:
        screen.line(f"  {row.name:<10} {MARKS[row.state]} {row.state:<10} {row.url or f'log {row.log}'}")


@contextmanager
def _progress(screen: Screen) -> Iterator[Say]:
    """A line that is redrawn on a terminal; elsewhere a new line when something else happens, or all few seconds."""
    began = time.monotonic()
    if screen.is_live:
        with screen.console.status("starting") as shown:
            yield lambda name, text: shown.update(f"{name}: {text} · {seconds(time.monotonic() - began)}")
        return
    told: dict[str, float] = {}

    def say(name: str, text: str) -> None:
        what = f"{name}: {text.partition(' · ')[0]}"
        if time.monotonic() - told.get(what, -PLAIN_EVERY_S) >= PLAIN_EVERY_S:
            told[what] = time.monotonic()
            screen.line(f"  {name}: {text}")

    yield say
