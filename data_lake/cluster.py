"""Work spread over a Ray cluster: results in order, a bounded number in flight, units of a dead node done again.

Ray is loaded where it is used. Each node needs the same checkout, and the lake at the same address.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

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
            next_step="start one with `ray start --head`, or leave ray_address out to begin one here",
        ) from error


def spread(
    units: Iterable[Unit],
    work: Callable[[Unit], Result],
    *,
    in_flight: int,
    unit_bytes: int = UNIT_BYTES,
) -> Iterator[Result]:
    """`work(unit)` of each unit in the units' order, at most `in_flight` begun and not yet given out.

    units: taken as they are needed. work: a function that both sides can import, and that may be called twice for
    a unit. Ray waits for nodes that an autoscaler adds. Raises what `work` raised, and Transient for a unit that
    TRIES workers died over.
    """
    import ray

    remote = as_unit(_worked, unit_bytes)
    shared, waiting = ray.put(work), iter(units)
    running = deque(remote.remote(shared, unit) for unit in islice(waiting, in_flight))
    try:
        while running:
            yield given(running[0])
            running.popleft()
            running.extend(remote.remote(shared, unit) for unit in islice(waiting, 1))
    finally:
        for each in running:
            ray.cancel(each, force=True)


def _worked(work: Callable[[Unit], Result], unit: Unit) -> Result:
    return work(unit)


def as_unit(work: Callable[..., Any], unit_bytes: int = UNIT_BYTES) -> Any:
    """`work` as Ray's remote function: one core, on the least loaded node, again elsewhere when its worker dies."""
    import ray

    return ray.remote(num_cpus=1, memory=unit_bytes, max_retries=TRIES, scheduling_strategy="SPREAD")(work)


def given(promised: Any) -> Any:
    """The result of an `as_unit`, waited for. Raises what it raised, and Transient when TRIES workers died over it."""
    import ray
    from ray.exceptions import RayError, RayTaskError, TaskCancelledError

    try:
        return ray.get(promised)
    except (RayTaskError, TaskCancelledError):
        raise
    except RayError as error:
        raise Transient(f"the cluster lost a unit {TRIES} times: {error}") from error
