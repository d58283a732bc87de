"""What the records of an RLDS data set hold, as features.json declares it, and which of it becomes what."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from data_lake.sources.episode import TOLD, ask_together, asked
from data_lake.sources.files import Unreadable
from data_lake.specs import ReadSpec

Kind = Literal["numbers", "words", "pictures", "other"]
Features = Mapping[str, np.ndarray | list[bytes]]
"""Of one record, by the paths of their leaves."""

OBSERVATION = "steps/observation/"
STATES = ("steps/observation/state", "steps/observation/proprio")
WORDS = ("steps/language_instruction", "steps/observation/language_instruction")
SUCCESS = ("success", "episode_metadata/success")


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """One feature. path: its key in the records. kind: `pictures` are RGB of 8 bits, `other` is not read (depth,
    encoded tensors, sequences inside steps). shape: of one step, -1 for any size; of the episode where not per step."""

    path: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    is_per_step: bool

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    @property
    def is_depth(self) -> bool:
        return self.dtype == "image" and self.kind == "other"


def leaves_of(features: Mapping[str, Any]) -> dict[str, Leaf]:
    """The features by their paths. Raises one of ODD when features.json is not of its form."""
    return {leaf.path: leaf for leaf in _walk(features, "", is_per_step=False)}


def _walk(node: Mapping[str, Any], path: str, *, is_per_step: bool) -> Iterator[Leaf]:
    if "featuresDict" in node:
        for name, inner in node["featuresDict"]["features"].items():
            yield from _walk(inner, f"{path}/{name}" if path else name, is_per_step=is_per_step)
    elif path == "steps" and "sequence" in node:
        yield from _walk(node["sequence"]["feature"], path, is_per_step=True)
    else:
        kind, dtype, shape = _kind(node)
        yield Leaf(path=path, kind=kind, dtype=dtype, shape=shape, is_per_step=is_per_step)


def _kind(node: Mapping[str, Any]) -> tuple[Kind, str, tuple[int, ...]]:
    if "text" in node:
        return "words", "string", ()
    if "image" in node:
        image, shape = node["image"], _shape(node["image"])
        is_rgb = image.get("dtype", "uint8") == "uint8" and shape[-1:] in ((), (3,), (-1,))
        return "pictures" if is_rgb else "other", "image", shape
    if "tensor" not in node:
        return "other", "", ()
    tensor, shape = node["tensor"], _shape(node["tensor"])
    dtype = str(tensor["dtype"])
    if dtype == "string" and not shape:
        return "words", dtype, shape
    is_plain = tensor.get("encoding", "none") == "none" and -1 not in shape and math.prod(shape) > 0
    is_number = dtype.startswith(("float", "bfloat", "int", "uint", "bool"))
    return "numbers" if is_plain and is_number else "other", dtype, shape


def _shape(node: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(size) for size in node.get("shape", {}).get("dimensions", ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """state, action: concatenated in this order. views: by name. instruction: where the words are, or the words.
    success: whether a demonstration succeeded, where the records say it. depth: pictures that nobody asked for."""

    state: tuple[Leaf, ...]
    action: tuple[Leaf, ...]
    views: Mapping[str, Leaf]
    instruction: Leaf | str
    success: Leaf | None
    depth: tuple[Leaf, ...]


def choose(root: Path, leaves: Mapping[str, Leaf], read: ReadSpec) -> Chosen:
    """What `read` names, else what RLDS names so. Raises UserError LAKE-035 for what neither settles."""
    numbers, pictures, words = (_of_kind(leaves, kind) for kind in ("numbers", "pictures", "words"))
    columns = {path: leaf for path, leaf in numbers.items() if leaf.is_per_step}
    states = [path for path in STATES if path in columns]
    actions = [path for path in ("steps/action",) if path in columns]
    flags = [numbers[path] for path in SUCCESS if path in numbers]
    state = partial(_columns, root, "state", read.state or (states if len(states) == 1 else ()), columns)
    action = partial(_columns, root, "action", read.action or actions, columns)
    instruction = partial(_instruction, root, words, read.instruction)
    ask_together(state, action, instruction)
    return Chosen(
        state=state(),
        action=action(),
        views={view: _leaf(root, "views", path, pictures) for view, path in read.views.items()} or _seen(pictures),
        instruction=instruction(),
        success=next((flag for flag in flags if flag.width == 1 and not flag.is_per_step), None),
        depth=() if read.views else tuple(leaf for leaf in leaves.values() if leaf.is_depth),
    )


def _of_kind(leaves: Mapping[str, Leaf], kind: Kind) -> dict[str, Leaf]:
    return {path: leaf for path, leaf in leaves.items() if leaf.kind == kind}


def _seen(pictures: Mapping[str, Leaf]) -> dict[str, Leaf]:
    """Every camera of the observation, by its path below it."""
    return {
        path.removeprefix(OBSERVATION).replace("/", "_"): leaf
        for path, leaf in sorted(pictures.items())
        if leaf.is_per_step and path.startswith(OBSERVATION)
    }


def _columns(root: Path, field: str, paths: Sequence[str], numbers: Mapping[str, Leaf]) -> tuple[Leaf, ...]:
    """A dict of tensors, as RT-1's action, has no order of its own: it is asked for, as is all that is not there."""
    named = [path for path in numbers if path.startswith(f"steps/{field}/" if field == "action" else OBSERVATION)]
    if not paths:
        among = _listed(named or numbers)
        example = [path.removeprefix("steps/") for path in named or numbers][:1] or [f"observation/{field}"]
        raise asked(root, field, f"which of its features are the {field}", f"one or several of {among}", example)
    return tuple(_leaf(root, field, path, numbers) for path in paths)


def _instruction(root: Path, words: Mapping[str, Leaf], named: str | None) -> Leaf | str:
    if named is not None and named.startswith("="):
        return named.removeprefix("=")
    path = named or next((path for path in WORDS if path in words), None)
    if path is None:
        choices = f"{_listed(words)} or =the words"
        raise asked(root, "instruction", "which words its episodes were told", choices, TOLD)
    return _leaf(root, "instruction", path, words)


def _leaf(root: Path, field: str, path: str, among: Mapping[str, Leaf]) -> Leaf:
    """`path` with or without the leading steps/."""
    found = among.get(path) or among.get(f"steps/{path}")
    if found is None:
        fit: Any = next((each.removeprefix("steps/") for each in among), "")
        example = fit if field == "instruction" else {"front": fit} if field == "views" else [fit]
        raise asked(root, field, f"anything fit for {field} under {path!r}", _listed(among), example)
    return found


def _listed(paths: Collection[str]) -> str:
    return ", ".join(path.removeprefix("steps/") for path in paths) or "nothing: features.json has none that is fit"


def matrix(features: Features, leaves: Sequence[Leaf]) -> np.ndarray:
    """Numbers of one record, side by side: (T, D) float32. Raises Unreadable LAKE-114."""
    parts = [_numbers(features, leaf) for leaf in leaves]
    for leaf, part in zip(leaves, parts, strict=True):
        if len(part) != len(parts[0]):
            raise Unreadable("LAKE-114", f"{leaf.path} holds {len(part)} steps, {leaves[0].path} {len(parts[0])}")
    return np.concatenate(parts, axis=1)


def _numbers(features: Features, leaf: Leaf) -> np.ndarray:
    """(T, D) float32."""
    values = _present(features, leaf)
    expected = "f" if "float" in leaf.dtype else "i"
    if not isinstance(values, np.ndarray) or values.dtype.kind != expected:
        raise Unreadable("LAKE-114", f"{leaf.path} is declared {leaf.dtype} and holds something else")
    if len(values) % leaf.width:
        held = f"{len(values) // leaf.width} steps of {leaf.width} and {len(values) % leaf.width} more"
        raise Unreadable("LAKE-114", f"{leaf.path} holds {held}")
    return values.reshape(-1, leaf.width).astype(np.float32)


def texts(features: Features, leaf: Leaf, num_steps: int) -> list[str]:
    """What is said at each step. Raises Unreadable LAKE-114."""
    said = contents(features, leaf)
    if len(said) != (num_steps if leaf.is_per_step else 1):
        raise Unreadable("LAKE-114", f"{leaf.path} holds {len(said)} texts for {num_steps} steps")
    try:
        words = [text.decode() for text in said]
    except UnicodeDecodeError as error:
        raise Unreadable("LAKE-114", f"{leaf.path} is no UTF-8") from error
    return words if leaf.is_per_step else words * num_steps


def contents(features: Features, leaf: Leaf) -> list[bytes]:
    """Texts or encoded pictures. Raises Unreadable LAKE-114."""
    values = _present(features, leaf)
    if not isinstance(values, list):
        raise Unreadable("LAKE-114", f"{leaf.path} holds numbers")
    return values


def single(features: Features, leaf: Leaf) -> str | float | int | bool | None:
    """What the record says once of its whole episode; None where it says nothing that is one value."""
    values = features.get(leaf.path, [])
    if len(values) != 1:
        return None
    if isinstance(values, list):
        return values[0].decode(errors="replace") if leaf.kind == "words" else None
    return bool(values[0]) if leaf.dtype == "bool" else values[0].item()


def _present(features: Features, leaf: Leaf) -> np.ndarray | list[bytes]:
    if leaf.path not in features:
        raise Unreadable("LAKE-114", f"{leaf.path} is missing")
    return features[leaf.path]
