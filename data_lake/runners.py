"""Who does the units of a stage's work: Daft's native runner on this machine, or tasks of a Ray cluster.

Either gives the same results in the same order; which one, and with how many workers, is never identity.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial

from data_lake.cluster import Cluster, error_of, told_of
from errors import Transient, UserError
from lookup import lookup

NATIVE, RAY = "native", "ray"


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """name: `native` (Daft on this machine, a unit per core) or `ray`. workers: units in flight on the Ray cluster, and
    how many share little work.

    address: of the cluster, "" for one that begins here.
    """

    name: str = NATIVE
    workers: int = 1
    address: str = ""

    def run(self, work: str, told: str, units: Sequence[str]) -> Iterator[None]:
        """`work(told, unit)` for each unit, wherever; yields as they are finished, in their order.

        work: dotted name of a function of two texts, which leaves its result in the lake. Raises the UserError or
        Transient of the first unit that failed, Transient when the cluster lost a unit again and again, UserError
        PREP-010 for an unknown runner, LAKE-156 and -157 as `cluster.joined`.
        """
        with self.cluster() as cluster:
            if cluster is not None:
                yield from cluster.spread(units, partial(_done, work, told))
            elif units:
                yield from _native(work, told, units)

    def cluster(self) -> AbstractContextManager[Cluster | None]:
        """The Ray cluster, None for this machine alone. Raises UserError PREP-010 for an unknown runner."""
        if self.name not in (NATIVE, RAY):
            raise UserError(
                "PREP-010",
                f"unknown runner {self.name!r}",
                where="runner, in the profile",
                next_step=f"set it to {NATIVE} or {RAY}",
            )
        return Cluster(self.address, self.workers) if self.name == RAY else nullcontext()


def failure_of(work: str, told: str, unit: str) -> str:
    """Do a unit. What is told of the UserError or Transient that it raised, "" when there was none."""
    try:
        lookup({}, work, "function")(told, unit)
    except (UserError, Transient) as error:
        return told_of(error)
    return ""


def _done(work: str, told: str, unit: str) -> Iterator[None]:
    yield lookup({}, work, "function")(told, unit)


def _native(work: str, told: str, units: Sequence[str]) -> Iterator[None]:
    """Units as rows of a Daft plan, a batch each: its native runner keeps every core at one, and the order.

    Meanwhile BLAS has one thread: several per unit would wait for one another's cores.
    """
    import daft
    from threadpoolctl import threadpool_limits

    choose_native()
    failure = daft.func(failure_of, return_dtype=daft.DataType.string())
    plan = daft.from_pydict({"unit": list(units)}).into_batches(1)
    found = plan.select(failure(daft.lit(work), daft.lit(told), daft.col("unit")).alias("failure"))
    with threadpool_limits(1):
        for row in found.iter_rows():
            if row["failure"]:
                raise error_of(row["failure"])
            yield None


@cache
def choose_native() -> None:
    """For Daft in this process, whatever an environment variable says or a Ray cluster that someone else joined. Asked
    for its runner before it has one, Daft would import Ray to find out."""
    import daft
    from daft.exceptions import DaftCoreException

    try:
        daft.set_runner_native()
    except DaftCoreException:  # whoever is in this process has chosen already
        if daft.get_or_infer_runner_type() != NATIVE:
            raise
