"""A small service of `up`: gives flow runs that nobody would execute to somebody, and restarts a dead worker.

- A Retry pressed on a run of a terminal or a notebook leaves it in AwaitingRetry for ever, for it belongs to
  no deployment: the adopter executes that same flow run.
- A run whose process was killed stays `Running`, and a running run cannot be retried: it is marked Crashed.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from data_lake.files import replace
from flows import trace
from flows.api import Json, PrefectApi, Refused
from flows.leases import free_leases_of_dead_runs
from flows.places import ROOT, Places, places
from flows.services import ledger
from flows.services.alive import engines
from flows.services.commands import commands
from flows.services.up import start

log = logging.getLogger("adopter")

ENTRYPOINTS = {
    "train-loop": "flows.train_loop.train_loop",
    "ingest-new": "flows.ingest_new.ingest_new",
    "nightly-eval": "flows.nightly_eval.nightly_eval",
}
"""Flow name to what the engine imports."""

LOOK_EVERY_S = 2.0
SETTLED_AFTER_S = 15.0
"""A run that changed state so recently may have a process that has not shown itself yet."""


@dataclass(kw_only=True, slots=True)
class Adopter:
    """`look()` once per round. suspects: runs that seemed dead in the last round; twice in a row counts."""

    places: Places
    api: PrefectApi
    entrypoints: Mapping[str, str] = field(default_factory=lambda: ENTRYPOINTS)
    settled_after_s: float = SETTLED_AFTER_S
    suspects: frozenset[str] = frozenset()
    adopted: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def look(self) -> None:
        """One round. Raises `OSError` or `Refused` when the server does not answer; the next round may."""
        for run_id in free_leases_of_dead_runs(self.places, self.api):
            log.info("%s: process is gone, its place is free", run_id)
        self._bury()
        self._adopt()
        self._revive_worker()

    def _bury(self) -> None:
        """Mark runs whose process is gone, so that a Retry is possible and their place is free."""
        executed = {engine.run_id for engine in engines()}
        unfinished = {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}}
        runs = self.api.flow_runs(unfinished, flows=list(self.entrypoints), limit=200)
        dead = {run["id"]: run for run in runs if run["id"] not in executed and self._seems_dead(run)}
        for run_id in self.suspects & dead.keys():
            cancelling = dead[run_id]["state"]["type"] == "CANCELLING"
            kind, name = ("CANCELLED", "Cancelled") if cancelling else ("CRASHED", "Crashed")
            self.api.set_state(run_id, kind, name, "its process ended without a word; Retry continues it")
            log.info("%s: process is gone, now %s", run_id, name)
        self.suspects = frozenset(dead.keys() - self.suspects)

    def _seems_dead(self, run: Json) -> bool:
        """The trace of this very execution decides at once; without one, a deployment's run that has had time to
        start and has no engine."""
        dead = trace.is_dead(self.places.home, run["id"])
        changed = datetime.fromisoformat(run["state"]["timestamp"]).timestamp()
        if dead and trace.left_at(self.places.home, run["id"]) >= changed:
            return True
        if time.time() - changed < self.settled_after_s:
            return False
        return run["deployment_id"] is not None if dead is None else dead

    def _adopt(self) -> None:
        """Execute one waiting run that no worker will ever see; the others wait for their turn."""
        self.adopted = {run_id: child for run_id, child in self.adopted.items() if child.poll() is None}
        if self.adopted:
            return
        executed = {engine.run_id for engine in engines()}
        waiting = {
            "state": {"type": {"any_": ["SCHEDULED"]}},
            "deployment_id": {"is_null_": True},
            "parent_task_run_id": {"is_null_": True},
            "next_scheduled_start_time": {"before_": datetime.now(UTC).isoformat()},
        }
        for run in self.api.flow_runs(waiting, flows=list(self.entrypoints)):
            if run["id"] not in executed:
                self.adopted[run["id"]] = self._execute(run)
                return

    def _execute(self, run: Json) -> "subprocess.Popen[bytes]":
        flow = self.api.call("GET", f"/flows/{run['flow_id']}")["name"]
        log.info("%s: executing %s", run["id"], run["name"])
        output = self.places.home / "logs" / f"run-{run['id']}.log"
        shared = commands(self.places, dict(ledger.read(self.places.home).ports))["adopter"].env
        env = {**shared, "PREFECT_API_URL": self.api.url, "PREFECT__FLOW_RUN_ID": run["id"]}
        with output.open("ab") as opened:
            return subprocess.Popen(
                [sys.executable, "-m", "prefect.flow_engine", self.entrypoints[flow]],
                env=env,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=opened,
                stderr=opened,
                start_new_session=True,
            )

    def _revive_worker(self) -> None:
        """Only while `up` wants one: after `down` the ledger names none."""
        worker = ledger.read(self.places.home).get("worker")
        if worker is None or worker.is_alive():
            return
        with ledger.locked(self.places.home):
            known = ledger.read(self.places.home)
            worker = known.get("worker")
            if worker is None or worker.is_alive():
                return
            ports = dict(known.ports)
            start(self.places.home, "worker", commands(self.places, ports)["worker"], None)
        log.info("worker restarted")


def main() -> None:
    """Look every few seconds until SIGTERM; a server that is away for a while is waited for."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    here = places()
    adopter = Adopter(places=here, api=PrefectApi(url=os.environ["PREFECT_API_URL"]))
    while True:
        try:
            adopter.look()
        except (OSError, Refused) as error:
            log.warning("the server does not answer: %s", error)
        replace(here.home / "adopter.json", f'{{"pid": {os.getpid()}, "looked": {time.time()}}}'.encode())
        time.sleep(LOOK_EVERY_S)


if __name__ == "__main__":
    main()
