"""A cluster that is this process: what goes there and comes back is pickled as Ray would, one unit after another."""

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

from data_lake.cluster import Cluster, Promise
from data_lake.runners import RAY, Runner


def sent(value: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(value))


class Kept(Promise[Any]):
    """What is there already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self._value


class Pretended(Cluster):
    """units: what was sent there."""

    def __init__(self, workers: int = 2) -> None:
        super().__init__("", workers)
        self.units: list[Any] = []

    def spread(self, units: Iterable[Any], work: Callable[[Any], Iterator[Any]]) -> Generator[Any]:
        for unit in units:
            self.units.append(unit)
            for found in sent(work)(sent(unit)):
                yield sent(found)

    def submit(self, work: Callable[[Any], Any], unit: Any) -> Promise[Any]:
        self.units.append(unit)
        return Kept(sent(sent(work)(sent(unit))))


@dataclass(frozen=True, kw_only=True)
class Pretending(Runner):
    """Of that cluster."""

    name: str = RAY
    pretended: Pretended

    def cluster(self) -> Cluster:
        return self.pretended
