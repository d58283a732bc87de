"""Who does the units of a stage's work: Daft's native runner on this machine, or tasks of a Ray cluster.

Either gives the same results in the same order; which one, and with how many workers, is never identity.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from errors import UserError
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

        work: dotted name of a function of two texts, which leaves its result in the lake. Raises the UserError of the
        first unit that failed, Transient when the cluster lost a unit again and again, PREP-010 for an unknown runner.
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
                fields = json.loads(failure)
                raise UserError(fields.pop("code"), fields.pop("message"), **fields)
            yield None

    def _on_ray(self, work: str, told: str, units: Sequence[str]) -> Iterator[str]:
        from data_lake.cluster import connect, spread

        connect(self.address)
        return spread(units, partial(failure_of, work, told), in_flight=self.workers)


def failure_of(work: str, told: str, unit: str) -> str:
    """Do a unit. The UserError that it raised as JSON, "" when there was none: errors travel as values."""
    try:
        lookup({}, work, "function")(told, unit)
    except UserError as error:
        names = ("code", "message", "where", "done", "next_step")
        return json.dumps(dict(zip(names, error.args, strict=True)))
    return ""


def _native(work: str, told: str, units: Sequence[str]) -> Iterator[str]:
    """Units as rows of a Daft plan, a batch each: its native runner keeps every core at one, and the order."""
    import daft

    failure = daft.func(failure_of, return_dtype=daft.DataType.string())
    plan = daft.from_pydict({"unit": list(units)}).into_batches(1)
    found = plan.select(failure(daft.lit(work), daft.lit(told), daft.col("unit")).alias("failure"))
    for row in found.iter_rows():
        yield row["failure"]
