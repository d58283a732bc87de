"""Who does the units of a stage's work: Daft's native runner on this machine, or tasks of a Ray cluster.

Either gives the same results in the same order; which one, and with how many workers, is never identity.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from errors import Transient, UserError
from lookup import lookup

NATIVE, RAY = "native", "ray"


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """name: `native` (Daft on this machine, a unit per core) or `ray`. workers: units in flight on the Ray cluster.

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
        if self.name not in (NATIVE, RAY):
            raise UserError(
                "PREP-010",
                f"unknown runner {self.name!r}",
                where="runner, in the profile",
                next_step=f"set it to {NATIVE} or {RAY}",
            )
        if not units:
            return
        for failure in self._on_ray(work, told, units) if self.name == RAY else _native(work, told, units):
            if failure:
                raise error_of(failure)
            yield None

    def _on_ray(self, work: str, told: str, units: Sequence[str]) -> Iterator[str]:
        from data_lake.cluster import joined, spread

        with joined(self.address):
            yield from spread(units, partial(failure_of, work, told), in_flight=max(1, self.workers))


def failure_of(work: str, told: str, unit: str) -> str:
    """Do a unit. The arguments of the UserError or Transient that it raised as JSON, "" when there was none: these
    errors travel as values, since an engine passes on no more than their text."""
    try:
        lookup({}, work, "function")(told, unit)
    except (UserError, Transient) as error:
        return failure_as_text(error)
    return ""


def failure_as_text(error: UserError | Transient) -> str:
    return json.dumps(error.args)


def error_of(failure: str) -> UserError | Transient:
    """What `failure_as_text` was given: a UserError has five arguments, Transient one."""
    match json.loads(failure):
        case [code, message, where, done, next_step]:
            return UserError(code, message, where=where, done=done, next_step=next_step)
        case arguments:
            return Transient(*arguments)


def _native(work: str, told: str, units: Sequence[str]) -> Iterator[str]:
    """Units as rows of a Daft plan, a batch each: its native runner keeps every core at one, and the order.

    Meanwhile BLAS has one thread: several per unit would wait for one another's cores.
    """
    import daft
    from threadpoolctl import threadpool_limits

    if daft.get_or_infer_runner_type() != NATIVE:  # an environment variable, or a Ray cluster that someone else joined
        daft.set_runner_native()
    failure = daft.func(failure_of, return_dtype=daft.DataType.string())
    plan = daft.from_pydict({"unit": list(units)}).into_batches(1)
    found = plan.select(failure(daft.lit(work), daft.lit(told), daft.col("unit")).alias("failure"))
    with threadpool_limits(1):
        for row in found.iter_rows():
            yield row["failure"]
