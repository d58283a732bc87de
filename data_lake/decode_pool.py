"""Values made ahead by a Ray cluster: `ahead`'s makers for a machine whose own cores are too few.

Tasks, not actors: Ray places each where a core is free, tells an autoscaler what is asked for, and makes a value again
whose node died over it or before it was fetched. What the function holds open stays open in a worker all the same.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, TypeVar

from data_lake.ahead import THREADS, Begin
from data_lake.cluster import as_unit, given, joined, returned
from errors import UserError

T = TypeVar("T")

THREADS_OF_RANK, RAY = "threads", "ray"
MOST_FETCHED = 64  # at a time; each is a thread that waits


def cluster_for(decode: str, ray_address: str) -> str:
    """Address of the cluster that makes batches where a profile says `decode` and `ray_address`; "" for none.

    Raises UserError LOAD-002 for another word, and for `ray` without an address: a cluster that began here would end
    with the process that began it, and each rank would begin its own.
    """
    if decode == THREADS_OF_RANK:
        return ""
    if decode == RAY and ray_address:
        return ray_address
    raise UserError(
        "LOAD-002",
        f"decode: {decode} needs ray_address" if decode == RAY else f"unknown decode {decode!r}",
        where="decode, in the profile",
        next_step=f"set it to {THREADS_OF_RANK}, or to {RAY} with ray_address: HOST:PORT of `ray start --head`",
    )


@contextmanager
def pool(address: str, copied: Callable[[T], T], make: Callable[[int], T]) -> Iterator[Begin[T]]:
    """Makers in the cluster at `address` (HOST:PORT); leaving it cancels what is under way.

    make: picklable, what it opens dropped; goes to the cluster once, and workers of a node share its arrays. Values are
    fetched as soon as they are made, by threads, which take them out of Ray's memory with `copied`: once a process has
    left the cluster, Ray lets others write there, whatever arrays still lie in it. Raises UserError LAKE-156 when no
    cluster answers; a value raises the UserError or Transient of `make`, Transient when the cluster lost it again and
    again.
    """
    with joined(address):
        import ray

        unit, made, under_way = as_unit(returned), partial(_made, [ray.put(make)]), set[Any]()
        fetching = ThreadPoolExecutor(MOST_FETCHED, thread_name_prefix=THREADS)

        def begin(key: int) -> Future[T]:
            promised = unit.remote(made, key)
            under_way.add(promised)
            future = fetching.submit(_fetched, copied, promised)
            future.add_done_callback(lambda _: under_way.discard(promised))
            return future

        try:
            yield begin
        finally:
            for each in tuple(under_way):
                ray.cancel(each, force=True)
            fetching.shutdown(cancel_futures=True)


def _fetched(copied: Callable[[T], T], promised: Any) -> T:
    return copied(given(promised))


def _made(kept: list[Any], key: int) -> Any:
    """In a worker. kept: what `make` is, by a reference."""
    return _opened(kept[0])(key)


@lru_cache(maxsize=1)
def _opened(kept: Any) -> Callable[[int], Any]:
    """What `make` became here: one object for all keys, so that tables and decoders are opened once per worker."""
    import ray

    return ray.get(kept)
