"""Work spread over a Ray cluster: results in order, a bounded number in flight, units of a dead node done again.

Ray is loaded where it is used. Each node needs the same checkout, and the lake at the same address.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from errors import Transient, UserError

OBJECT_STORE_BYTES = 256 << 20  # of a cluster that begins here; results are small, their bytes go to the lake
# What a cluster that begins here is told before Ray is loaded. The first variable, despite its name, decides on every
# system whether Ray listens on all interfaces or, at 0, on loopback alone (`ray_constants.ENABLE_RAY_CLUSTER`).
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
UNIT_BYTES = 512 << 20  # memory that Ray sets aside for a unit, so that a node is not given more than it holds
TRIES = 8  # of a unit whose node or worker died

Unit = TypeVar("Unit")
Result = TypeVar("Result")


@contextmanager
def joined(address: str) -> Iterator[None]:
    """Inside, this process is in the cluster at `address` (HOST:PORT), or in one on this machine for "", which listens
    on loopback alone and ends with the block. In a cluster already, it stays there.

    `RAY_AUTH_MODE` decides as everywhere in Ray whether a cluster asks for a token; one that begins here does unless
    told otherwise. Raises UserError LAKE-156 when no cluster answers, LAKE-157 when Ray, loaded before, would listen
    beyond this machine.
    """
    if not address:
        os.environ.update(ALONE)
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a unit without a GPU leaves them visible
    try:
        _init(address)
        yield
    finally:
        ray.shutdown()


def _init(address: str) -> None:
    import ray

    if not address:
        ray.init(address="local", include_dashboard=False, log_to_driver=False, object_store_memory=OBJECT_STORE_BYTES)
        if not ray.get_runtime_context().gcs_address.startswith("127."):
            raise UserError(
                "LAKE-157",
                "a Ray cluster that begins here would listen on all interfaces: Ray was loaded before",
                where="runner: ray, without ray_address",
                next_step=f"set {next(iter(ALONE))}=0, or join a cluster by ray_address",
            )
        return
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError) as error:
        raise UserError(
            "LAKE-156",
            f"no Ray cluster answers there: {error}",
            where=f"ray_address: {address}",
            next_step="start one with `ray start --head`, or need none: runner: native and decode: threads in the "
            "profile",
        ) from error


def spread(
    units: Iterable[Unit],
    work: Callable[[Unit], Iterator[Result]],
    *,
    in_flight: int,
    unit_bytes: int = UNIT_BYTES,
) -> Iterator[Result]:
    """What `work(unit)` yields of each unit, in the units' order; at most `in_flight` units begun and not given out.

    units: taken as they are needed. work: a function that both sides can import, and that may be called twice for
    a unit. It never waits for this side: what it yields early lies in the object store of its node, and what that
    does not hold on the node's disk; so a unit that is done again always finds a place. Ray waits for nodes that an
    autoscaler adds. Raises what `work` raised, and Transient for a unit that TRIES workers died over.
    """
    import ray

    remote = as_unit(_yielded, unit_bytes, num_returns="streaming")
    shared, waiting = ray.put(work), iter(units)
    running: deque[Any] = deque(remote.remote(shared, unit) for unit in islice(waiting, in_flight))
    try:
        while running:
            for reference in running[0]:
                yield given(reference)
            running.popleft()
            running.extend(remote.remote(shared, unit) for unit in islice(waiting, 1))
    finally:
        for each in running:
            ray.cancel(each, force=True)


class Promise(Generic[Result]):
    """What a unit of work will give."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def done(self) -> bool:
        """Whether `result` would not wait."""
        import ray

        return bool(ray.wait([self._reference], timeout=0, fetch_local=False)[0])

    def result(self) -> Result:
        """Raises as `spread`."""
        return given(self._reference)


class Cluster:
    """The cluster at `address` as of `joined`, for a `with` block: joined when the first unit goes there, so that who
    turns out to have none waits for none. workers: how many units of each kind are to be under way."""

    def __init__(self, address: str, workers: int) -> None:
        self.workers = max(1, workers)
        self._address = address
        self._membership: ExitStack | None = None

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        if self._membership is not None:
            self._membership.close()

    def _join(self) -> None:
        if self._membership is None:
            with ExitStack() as opened:
                opened.enter_context(joined(self._address))
                self._membership = opened.pop_all()

    def spread(self, units: Iterable[Unit], work: Callable[[Unit], Iterator[Result]]) -> Generator[Result]:
        """As the function; without a unit nothing is joined."""
        waiting = iter(units)
        first = list(islice(waiting, 1))
        if first:
            self._join()
            yield from spread(chain(first, waiting), work, in_flight=self.workers)

    def submit(self, work: Callable[[Unit], Result], unit: Unit) -> Promise[Result]:
        """One unit; how many are under way is for the caller to bound."""
        self._join()
        return Promise(as_unit(returned).remote(work, unit))


@dataclass(frozen=True, slots=True)
class _Failure:
    told: str


def as_unit(work: Callable[..., Any], unit_bytes: int = UNIT_BYTES, **options: Any) -> Any:
    """`work` as Ray's remote function: one core, on the least loaded node, again elsewhere when its worker dies."""
    import ray

    return ray.remote(num_cpus=1, memory=unit_bytes, max_retries=TRIES, scheduling_strategy="SPREAD", **options)(work)


def _yielded(work: Callable[[Unit], Iterator[Result]], unit: Unit) -> Iterator[Result | _Failure]:
    try:
        yield from work(unit)
    except (UserError, Transient) as error:
        yield _Failure(told_of(error))


def returned(work: Callable[[Unit], Result], unit: Unit) -> Result | _Failure:
    """In a worker: the result, or what `given` makes an error of again."""
    try:
        return work(unit)
    except (UserError, Transient) as error:
        return _Failure(told_of(error))


def given(reference: Any) -> Any:
    """The result of a unit, waited for. Raises what it raised, and Transient when TRIES workers died over it."""
    import ray
    from ray.exceptions import RayError, RayTaskError, TaskCancelledError

    try:
        found = ray.get(reference)
    except (RayTaskError, TaskCancelledError):
        raise
    except RayError as error:
        raise Transient(f"the cluster lost a unit {TRIES} times: {error}") from error
    if isinstance(found, _Failure):
        raise error_of(found.told)
    return found


def told_of(error: UserError | Transient) -> str:
    """Its arguments as JSON: these errors travel as values, since an engine passes on no more than their text."""
    return json.dumps(error.args)


def error_of(told: str) -> UserError | Transient:
    """What `told_of` told: a UserError has five arguments, Transient one."""
    match json.loads(told):
        case [code, message, where, done, next_step]:
            return UserError(code, message, where=where, done=done, next_step=next_step)
        case arguments:
            return Transient(*arguments)
