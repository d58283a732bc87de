"""Work spread over a Ray cluster: results in order, a bounded number in flight, units of a dead node done again.

Ray is loaded where it is used. Each node needs the same checkout, and the lake at the same address.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from errors import Transient

OBJECT_STORE_BYTES = 256 << 20  # of a cluster that begins here; results are small, their bytes go to the lake
UNIT_BYTES = 512 << 20  # memory that Ray sets aside for a unit, so that a node is not given more than it holds
TRIES = 8  # of a unit whose node or worker died

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def connect(address: str) -> None:
    """Join the cluster at `address` (`auto`, HOST:PORT), or begin one on this machine for "". Once per process.

    `RAY_AUTH_MODE` decides as everywhere in Ray whether the cluster asks for a token.
    """
    import ray

    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a unit without a GPU leaves them visible
    if address:
        ray.init(address=address, log_to_driver=False)
    else:
        ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=OBJECT_STORE_BYTES)


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
    from ray.exceptions import RayError, RayTaskError, TaskCancelledError

    remote = ray.remote(num_cpus=1, memory=unit_bytes, max_retries=TRIES, scheduling_strategy="SPREAD")(_worked)
    shared, waiting = ray.put(work), iter(units)
    running = deque(remote.remote(shared, unit) for unit in islice(waiting, in_flight))
    try:
        while running:
            yield ray.get(running[0])
            running.popleft()
            running.extend(remote.remote(shared, unit) for unit in islice(waiting, 1))
    except (RayTaskError, TaskCancelledError):
        raise
    except RayError as error:
        raise Transient(f"the cluster lost a unit {TRIES} times: {error}") from error
    finally:
        for each in running:
            ray.cancel(each, force=True)


def _worked(work: Callable[[Unit], Result], unit: Unit) -> Result:
    return work(unit)
