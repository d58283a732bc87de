"""A crew of worker processes for units of work: each unit's result comes exactly once, whoever dies or hangs.

Units and results are JSON. A worker that dies or stays silent is replaced and its unit tried once more.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from errors import Transient, UserError

ROOT = Path(__file__).resolve().parents[2]  # what the workers import from
PATIENCE_S = 300.0  # silent for longer: hung
GRACE_S = 2.0  # from SIGTERM to SIGKILL
LOG_TAIL = 2000
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Unit = dict[str, Any]
Pick = Callable[[Unit | None], Unit | None]


@dataclass(slots=True)
class _Worker:
    """One process and the unit it works on. Its standard error is a log file."""

    process: subprocess.Popen[bytes]
    log: Path
    unit: Unit | None = None
    last_unit: Unit | None = None
    since: float = 0.0
    buffer: bytearray = field(default_factory=bytearray)

    def hand(self, unit: Unit) -> None:
        self.unit, self.since = unit, time.monotonic()
        _send(self.process, unit)

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class Crew:
    """Up to `size` processes of `python -m module`, started when there is work, ended on leaving the context."""

    def __init__(
        self, module: str, settings: dict[str, Any], *, size: int, logs: Path, patience_s: float = PATIENCE_S
    ) -> None:
        self._module = module
        self._settings = settings
        self._size = size
        self._logs = logs
        self._patience_s = patience_s
        self._workers: list[_Worker] = []
        self._again: list[Unit] = []
        self._tried_twice: set[str] = set()
        self._num_started = 0

    def __enter__(self) -> "Crew":
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def run(self, pick: Pick) -> Iterator[tuple[Unit, dict[str, Any]]]:
        """Units with their results, as they finish. `pick(last unit)` says what an idle worker does next.

        None means nothing for now; it is asked again after every result. Raises what a worker's UserError
        was, RuntimeError for any other exception of a worker, Transient when a unit was lost twice.
        """
        while True:
            self._hand_out(pick)
            if not any(worker.unit for worker in self._workers):
                return
            yield from self._answers()

    def _hand_out(self, pick: Pick) -> None:
        for worker in self._workers:
            if worker.unit is None and (unit := self._next(pick, worker.last_unit)) is not None:
                worker.hand(unit)
        while len(self._workers) < self._size and (unit := self._next(pick, None)) is not None:
            worker = self._start()
            self._workers.append(worker)
            worker.hand(unit)

    def _next(self, pick: Pick, last: Unit | None) -> Unit | None:
        return self._again.pop() if self._again else pick(last)

    def _start(self) -> _Worker:
        self._num_started += 1
        log = self._logs / f"worker-{self._num_started}.log"
        threads = dict.fromkeys(SINGLE_THREADED, "1")
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **threads, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": path},
            )
        _send(process, self._settings)
        return _Worker(process=process, log=log)

    def _answers(self) -> Iterator[tuple[Unit, dict[str, Any]]]:
        """Wait until at least one worker answered or was lost."""
        with selectors.DefaultSelector() as selector:
            busy = [worker for worker in self._workers if worker.unit is not None]
            for worker in busy:
                selector.register(_stdout(worker), selectors.EVENT_READ, worker)
            deadline = min(worker.since for worker in busy) + self._patience_s
            ready = selector.select(max(0.0, deadline - time.monotonic()))
        for key, _ in ready:
            yield from self._read(key.data)
        for worker in busy:
            if worker.unit is not None and time.monotonic() - worker.since > self._patience_s:
                self._lose(worker, f"gave no result for {self._patience_s:.0f} s")

    def _read(self, worker: _Worker) -> Iterator[tuple[Unit, dict[str, Any]]]:
        received = os.read(_stdout(worker).fileno(), 1 << 20)
        if not received:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(GRACE_S)  # its own exit status tells a bug from a crash
            self._lose(worker, "ended")
            return
        worker.buffer += received
        if not worker.buffer.endswith(b"\n"):
            return
        answer = json.loads(worker.buffer)
        worker.buffer.clear()
        if "user_error" in answer:
            code, message, where, done, next_step = answer["user_error"]
            raise UserError(code, message, where=where, done=done, next_step=next_step)
        unit, worker.unit = worker.unit, None
        if unit is not None:
            worker.last_unit = unit
            yield unit, answer["result"]

    def _lose(self, worker: _Worker, how: str) -> None:
        """Replace a worker; its unit is tried once more, unless its own exception says that this is no use."""
        worker.end()
        self._workers.remove(worker)
        said = worker.log.read_text(errors="replace")[-LOG_TAIL:]
        name = json.dumps(worker.unit)[:200]
        if worker.process.returncode == 1:
            raise RuntimeError(f"a worker failed on {name}:\n{said}")
        if name in self._tried_twice or worker.unit is None:
            raise Transient(f"a worker {how} twice (status {worker.process.returncode}) on {name}:\n{said}")
        self._tried_twice.add(name)
        self._again.append(worker.unit)


def _stdout(worker: _Worker) -> Any:
    return worker.process.stdout


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    """One line of JSON. A process that is already gone is noticed when its answer is awaited."""
    if process.stdin is None:
        return
    try:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        return
