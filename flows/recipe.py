"""Recipes: parsed strictly, changed field by field, and resolved into what each stage is given."""

import dataclasses
import json
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from data_lake.names import ensure_name
from data_lake.specs import (
    AS_THE_SOURCE_SAYS,
    LABEL,
    NEUTRAL,
    ONE_DATA_SET,
    IngestSpec,
    MixtureSpec,
    PackSpec,
    PreprocessSpec,
    ReadSpec,
    Spec,
)
from errors import UserError
from lookup import lookup
from model_core.specs import CollectSpec, EvaluateSpec, ExportSpec, PolicySpec, TrainSpec
from tasks.specs import (
    CollectStage,
    EvaluateStage,
    ExportStage,
    GateSpec,
    IngestStage,
    MixStage,
    PackStage,
    PolicyInputs,
    PreprocessStage,
    RegisterStage,
    TrainStage,
)

RECIPES = {name: f"flows.recipes.{name}:RECIPE" for name in ("tiny", "smoke", "gr1")}


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopRecipe(Spec):
    """All specs of one loop. `collect` None: episodes come from `ingest.source`. `name` is a label, and the
    name of the registered model. `mixture`: further data sets to train on, and how much each counts."""

    name: str = field(metadata=LABEL)
    collect: CollectSpec | None
    ingest: IngestSpec
    preprocess: PreprocessSpec
    policy: PolicySpec
    pack: PackSpec
    train: TrainSpec
    export: ExportSpec
    evaluate: EvaluateSpec
    gate: GateSpec
    mixture: MixtureSpec = field(default=ONE_DATA_SET, metadata=NEUTRAL)


Validated = TypeVar("Validated", LoopRecipe, ReadSpec)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A further component of a mixture: what its own stages are given."""

    name: str = field(metadata=LABEL)
    ingest: IngestStage
    preprocess: PreprocessStage


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """What each stage of the loop is given. mix, others: None and empty unless the recipe has a mixture."""

    collect: CollectStage | None
    ingest: IngestStage
    preprocess: PreprocessStage
    pack: PackStage
    train: TrainStage
    export: ExportStage
    evaluate: EvaluateStage
    register: RegisterStage
    others: tuple[Part, ...] = field(default=(), metadata=NEUTRAL)
    mix: MixStage | None = field(default=None, metadata=NEUTRAL)


def resolve(recipe: LoopRecipe) -> Loop:
    """The one place where anything is derived from a recipe. Pure. Raises UserError PACK-014 where two components of
    a mixture have one name, LAKE-034 for what is no name of a data set."""
    policy, others = recipe.policy, recipe.mixture.others
    for ingest in (recipe.ingest, *(each.ingest for each in others)):
        ensure_name(ingest.dataset)
    names = (recipe.ingest.dataset, *(each.name for each in others))
    if twice := sorted({name for name in names if names.count(name) > 1}):
        hint = "give each a name of its own; the recipe's own data set is called as ingest.dataset is"
        raise UserError("PACK-014", f"components called {twice[0]!r}", where="mixture.others", next_step=hint)
    inputs = PolicyInputs(inputs=policy.inputs)
    return Loop(
        collect=CollectStage(collect=recipe.collect) if recipe.collect else None,
        ingest=IngestStage(ingest=recipe.ingest),
        preprocess=PreprocessStage(preprocess=recipe.preprocess, policy=inputs),
        pack=PackStage(
            pack=recipe.pack,
            policy=policy,
            weights=(recipe.mixture.weight, *(each.weight for each in others)) if others else (),
        ),
        train=TrainStage(train=recipe.train, policy=policy),
        export=ExportStage(export=recipe.export),
        evaluate=EvaluateStage(evaluate=recipe.evaluate),
        register=RegisterStage(name=recipe.name, gate=recipe.gate),
        others=tuple(
            Part(
                name=each.name,
                ingest=IngestStage(ingest=each.ingest),
                preprocess=PreprocessStage(preprocess=each.preprocess, policy=inputs),
            )
            for each in others
        ),
        mix=MixStage(names=names) if others else None,
    )


def load(name: str, changes: Iterable[str] = ()) -> LoopRecipe:
    """The recipe called `name` (or in the YAML file `name`, or a dotted `module:NAME`), with `a.b=value` changes.

    Raises UserError RECIPE-00x for an unknown recipe or field, or a value that does not fit.
    """
    if name.endswith((".yaml", ".yml")):
        recipe = _from_yaml(Path(name))
    else:
        recipe = lookup(RECIPES, name, "recipe")
        if not isinstance(recipe, LoopRecipe):
            raise UserError("RECIPE-001", f"{name} is a {type(recipe).__name__}, not a LoopRecipe")
    changes = list(changes)
    return changed(recipe, dict(assignment(change) for change in changes)) if changes else recipe


def changed(recipe: LoopRecipe, changes: dict[str, Any]) -> LoopRecipe:
    """`recipe` with the fields at dotted paths set to new values, validated as a whole."""
    tree = dataclasses.asdict(recipe)
    for path, value in changes.items():
        _set(tree, path, value)
    return parse(tree, where=", ".join(changes))


def parse(tree: Any, *, where: str) -> LoopRecipe:
    """A recipe from plain dicts and lists; unknown keys and ill-fitting values are refused at every level."""
    return _validated(LoopRecipe, tree, "", where)


def read_spec(changes: Iterable[str]) -> ReadSpec:
    """How a source is to be read, from `ingest.read.a=value` settings, as a recipe would have them."""
    tree: dict[str, Any] = {"ingest": {"read": dataclasses.asdict(AS_THE_SOURCE_SAYS)}}
    paths = []
    for path, value in map(assignment, changes):
        _set(tree, path, value)
        paths.append(path)
    return parse_read(tree["ingest"]["read"], where=", ".join(paths))


def parse_read(tree: Any, *, where: str) -> ReadSpec:
    """The `ingest.read` of a recipe by itself, as strictly."""
    return _validated(ReadSpec, tree, "ingest.read", where)


def _validated(kind: type[Validated], tree: Any, at: str, where: str) -> Validated:
    import pydantic  # only what is changed or read from YAML needs it

    try:
        found = pydantic.TypeAdapter(kind).validate_python(tree)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in (at, *first["loc"]) if part != "") or "the recipe"
        raise UserError("RECIPE-003", f"{path}: {first['msg']}", where=where, next_step=_written(path, first)) from None
    _check_numbers(dataclasses.asdict(found), at, where)
    return found


def _written(path: str, wrong: Any) -> str:
    """How a list or a mapping is written, where words stand in its place; else where to look."""
    if not isinstance(given := wrong["input"], str) or wrong["type"] not in ("tuple_type", "dict_type"):
        return "see the field in flows/recipes/"
    words = [word.strip(" '\"") for word in given.strip("[](){} ").split(",")]
    meant: Any = words if wrong["type"] == "tuple_type" else {words[0].partition("=")[0]: words[0].partition("=")[2]}
    return f"in JSON, as in --set {shlex.quote(f'{path}={json.dumps(meant)}')}"


COUNTS = ("num_steps", "rows_per_step", "num_draws", "checkpoint_every", "sample_stride", "tokens_per_row", "depth")
COUNTS += ("action_horizon", "execution_horizon", "denoise_steps", "block_size", "num_samples", "render_every")
COUNTS += ("num_heads", "num_kv_heads", "head_dim", "vision_width", "prefix_width", "suffix_width", "mlp_ratio")
COUNTS += ("patch_size", "image_size", "max_text_tokens", "length", "window")
SIGNED = ("open", "closed")  # a gripper's values
MOST = {"weight": 1e6}  # times that a sample is met in an epoch


def _check_numbers(node: Any, path: str, where: str) -> None:
    """No number of a recipe is negative or without bound, and what counts work to be done is at least one."""
    if isinstance(node, dict):
        for name, value in node.items():
            _check_numbers(value, f"{path}.{name}".lstrip("."), where)
    elif isinstance(node, list | tuple):
        if path.endswith("inputs.views") and len(set(node)) != (len(node) or 1):
            what = "no view twice" if node else "at least one view"
            raise UserError("RECIPE-003", f"{path}: {what} can be shown to a policy", where=where)
        for number, value in enumerate(node):
            _check_numbers(value, f"{path}.{number}", where)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        name = path.rpartition(".")[2]
        least = 1 if name in COUNTS else float("-inf") if name in SIGNED else 0
        most = MOST.get(name, sys.float_info.max)
        if not least <= node <= most:  # NaN too
            upto = f" to {most:,.0f}" if name in MOST else " on"
            raise UserError("RECIPE-003", f"{path}: {node} is not a number from {least}{upto}", where=where)


def _from_yaml(path: Path) -> LoopRecipe:
    import yaml

    try:
        tree = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise UserError(
            "RECIPE-001", f"no recipe file {path}", next_step=f"known recipes: {', '.join(RECIPES)}"
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        first = str(error).splitlines()[0]
        raise UserError("RECIPE-001", f"not a YAML file that can be read: {first}", where=str(path)) from None
    return parse(tree, where=str(path))


def assignment(change: str) -> tuple[str, Any]:
    path, equals, text = change.partition("=")
    if not equals:
        raise UserError(
            "RECIPE-004", f"{change!r} is not of the form field=value", next_step="--set train.num_steps=3000"
        )
    try:
        return path, json.loads(text)
    except json.JSONDecodeError:
        return path, text


def _set(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a leaf, or a whole branch; list items are addressed by number (`collect.tasks.0.name`)."""
    *parents, leaf = path.split(".")
    node: Any = tree
    for depth, key in enumerate(parents):
        node = node[_key(node, key, ".".join(parents[:depth]))]
    if isinstance(node, tuple):
        raise UserError("RECIPE-002", f"{path}: set the whole list instead", where=path)
    node[_key(node, leaf, ".".join(parents))] = value


def _key(node: Any, key: str, parent: str) -> Any:
    if isinstance(node, tuple | list) and key.isdigit() and int(key) < len(node):
        return int(key)
    if isinstance(node, dict) and key in node:
        return key
    known = list(node) if isinstance(node, dict) else []
    near = get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"
    raise UserError("RECIPE-002", f"no field {key!r} in {parent or 'the recipe'}", next_step=hint)
