"""What an ingest declares against what its data set records: it may fill in what was not said, and contradicts
nothing."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from data_lake.meaning import MEANT, MEANT_WHERE_SAID, meant
from data_lake.specs import ReadSpec
from errors import UserError

TOLD = ("fps", "instruction_source")  # by the files themselves: nothing that a person could declare otherwise
NOT_SAID = "not said"
ELSEWHERE = "name another data set with ingest.dataset"
READ = {each.name for each in fields(ReadSpec)}
Difference = tuple[str, Any, Any]
"""A name, what the data set records, and what the ingest says; None: not said."""


@dataclass(slots=True)
class Declared:
    """Of one ingest onto one version. dataset, source: what messages call them. recorded: the meaning of each episode
    of the version, as its table has it. said: that of this ingest. filled: other meanings for episodes."""

    dataset: str
    source: str
    recorded: Sequence[str]
    said: Mapping[str, Any]
    filled: dict[int, str] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def of_held(self, episode_index: int) -> None:
        """The source has an episode that the data set holds. Raises UserError LAKE-006 for a contradiction."""
        if episode_index >= len(self.recorded):  # it goes in now
            return
        text = self.recorded[episode_index]
        if text not in self._known:
            self._known[text] = self._completed(text, episode_index)
        if self._known[text] != text:
            self.filled[episode_index] = self._known[text]

    def _completed(self, text: str, episode_index: int) -> str:
        recorded = json.loads(text)
        for name, there, here in differences(recorded, self.said):
            if name not in TOLD and None not in (there, here):
                raise self._contradicted(name, there, here, f"episode {episode_index}")
        filled = dict(_new(text, self.said))
        return json.dumps(recorded | filled, sort_keys=True) if filled else text

    def of_new(self) -> None:
        """An episode is about to go in. Raises UserError LAKE-006 where the data set says what the source does not,
        or says otherwise."""
        self._alike(self.recorded, lambda each: each[1] is not None)

    def settle(self, *, is_new: bool) -> bool:
        """All is read; whether it makes a version. is_new: some episodes are new. Raises UserError LAKE-006 where
        episodes would not mean the same."""
        if not is_new and not self.filled:
            return False
        after = [self.filled.get(number, text) for number, text in enumerate(self.recorded)]
        self._alike(after, lambda each: is_new or None not in each)
        return True

    @property
    def edit(self) -> dict[str, Any] | None:
        """What was filled in, for the manifest."""
        if not self.filled:
            return None
        found = (each for text in {self.recorded[number] for number in self.filled} for each in _new(text, self.said))
        return {"declare": {"num_episodes": len(self.filled), "meaning": dict(sorted(found))}}

    def _alike(self, texts: Iterable[str], matters: Callable[[Difference], bool]) -> None:
        for text in dict.fromkeys(texts):
            found = [each for each in differences(json.loads(text), self.said) if matters(each)]
            if found:
                raise self._apart(found)

    def _contradicted(self, name: str, there: Any, here: Any, which: str) -> UserError:
        return UserError(
            "LAKE-006",
            f"{which} is held already, and recorded with {name} {shown(there)}; this ingest says {shown(here)}",
            where=f"data set {self.dataset} · {self.source}",
            done="nothing was changed",
            next_step=f"{_declare(name, 'to what is recorded, where that is right')}{ELSEWHERE}",
        )

    def _apart(self, found: list[Difference]) -> UserError:
        told = ", ".join(f"{name} ({shown(there)} there, {shown(here)} here)" for name, there, here in found)
        name, there, here = found[0]
        if there is None:
            first = _declare(name, f"and ingest the sources of {self.dataset} again (no row is taken twice)")
        else:
            first = _declare(name, "where the source means the same") if here is None else ""
        return UserError(
            "LAKE-006",
            f"the data set holds episodes that mean something else: {told}",
            where=f"data set {self.dataset} · {self.source}",
            done="nothing was appended",
            next_step=f"{first}{ELSEWHERE}",
        )


def _new(text: str, said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is said and was not."""
    for name, there, here in differences(json.loads(text), said):
        if there is None and name not in TOLD:
            yield name, here


def _declare(name: str, where: str) -> str:
    """The step by which a person may say it; empty for what only recorders say."""
    return f"set ingest.read.{name} {where}, or " if name in READ else ""


def differences(recorded: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Difference]:
    """In what enters the identity of episodes."""
    there, here = meant(recorded), meant(said)
    for name in (*MEANT, *MEANT_WHERE_SAID):
        one, other = there.get(name), json.loads(json.dumps(here.get(name)))  # as the table has it
        if one != other:
            yield name, one, other


def shown(value: Any) -> str:
    """As messages have it."""
    return NOT_SAID if value is None else value if isinstance(value, str) else json.dumps(value)
