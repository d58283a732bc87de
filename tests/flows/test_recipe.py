"""Recipes: strict at every level, changed by path, resolved by one pure function; their resolved form is golden."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_lake.identity import canonical, fingerprint
from data_lake.sources import open_source
from data_lake.sources.episode import asked
from data_lake.specs import AS_THE_SOURCE_SAYS, GripperSpec
from errors import UserError
from flows.recipe import RECIPES, LoopRecipe, assignment, changed, load, parse, read_spec, resolve

GOLDEN = Path(__file__).parents[1] / "golden" / "recipes.json"


@pytest.mark.parametrize("name", RECIPES)
def test_the_resolved_recipe_is_golden(name: str) -> None:
    """A diff of it shows exactly what a change means; `python -m tests.flows.test_recipe` writes it anew."""
    assert resolved(name) == json.loads(GOLDEN.read_text())[name]


def resolved(name: str) -> object:
    return json.loads(json.dumps(canonical(resolve(load(name)))))


def test_names_and_labels_are_unique_and_not_identity() -> None:
    tiny = load("tiny")
    assert len({load(name).name for name in RECIPES}) == len(RECIPES)
    renamed = changed(tiny, {"train.checkpoint_every": 7, "evaluate.num_videos": 0})
    assert fingerprint(dataclasses.replace(renamed, name="other")) == fingerprint(tiny)
    for change in ({"train.num_steps": 7}, {"ingest.dataset": "other"}):  # where episodes go is what an ingest does
        assert fingerprint(changed(tiny, change)) != fingerprint(tiny)


def test_changes_reach_leaves_and_whole_lists() -> None:
    recipe = load("tiny", ["train.num_steps=7", "policy.inputs.sight=grey", "preprocess.heldout_episodes=[1,2]"])
    assert (recipe.train.num_steps, recipe.policy.inputs.sight) == (7, "grey")
    assert recipe.preprocess.heldout_episodes == (1, 2)
    assert load("tiny", [f"train.num_steps={load('tiny').train.num_steps}"]) == load("tiny")


@pytest.mark.parametrize(
    ("change", "code", "hint"),
    [
        ("train.num_stepz=1", "RECIPE-002", "did you mean 'num_steps'?"),
        ("trian.num_steps=1", "RECIPE-002", "did you mean 'train'?"),
        ("train.num_steps=many", "RECIPE-003", ""),
        ("train.num_steps=-5", "RECIPE-003", ""),
        ("preprocess.sample_stride=0", "RECIPE-003", ""),
        ('pack.shuffle={"length": 8, "window": 0}', "RECIPE-003", ""),
        ("train.learning_rate=NaN", "RECIPE-003", ""),
        ("gate.margin=-0.1", "RECIPE-003", ""),
        ("train.learning_rate=Infinity", "RECIPE-003", ""),
        ("train.learning_rate=nan", "RECIPE-003", ""),
        ('train.num_steps="-5"', "RECIPE-003", ""),
        ("train.learning_rate=-.5", "RECIPE-003", ""),
        ("policy.num_heads=0", "RECIPE-003", ""),
        ("policy.patch_size=0", "RECIPE-003", ""),
        ("policy.vision=resnet", "RECIPE-003", ""),
        ("train", "RECIPE-004", ""),
        ("evaluate.tasks.0.name.x=1", "RECIPE-002", ""),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change: str, code: str, hint: str) -> None:
    with pytest.raises(UserError) as refused:
        load("tiny", [change])
    assert refused.value.code == code and hint in refused.value.next_step


def test_unknown_recipes_get_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean 'tiny'"):
        load("tinny")


def test_yaml_is_the_same_tree_and_as_strict(tmp_path: Path) -> None:
    tree = json.loads(json.dumps(dataclasses.asdict(load("smoke"))))
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(tree))
    assert load(str(path)) == load("smoke")
    tree["policy"]["inputs"]["colour"] = "red"
    with pytest.raises(UserError, match="policy.inputs.colour"):
        parse(tree, where="here")
    with pytest.raises(UserError, match="RECIPE-001"):
        load(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    "content", [b"a: [1", b"\x00\xff", b"!!python/object/apply:os.system [true]", b"", b"- 1", b"&a [*a]"]
)
def test_a_file_that_is_no_recipe_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match="(?s)RECIPE-00[13].*mine.yaml"):
        load(str(path))


@pytest.mark.parametrize("name", ["nomodule:X", "os:getcwd", "os:nothing", "flows.recipe:", ":"])
def test_a_dotted_name_that_is_no_recipe_is_named(name: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name)
    assert refused.value.code in ("NAME-002", "RECIPE-001") and name in refused.value.message


def test_every_spec_is_frozen() -> None:
    recipe: LoopRecipe = load("tiny")
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.train.num_steps = 1  # type: ignore[misc]


def test_a_mixture_is_part_of_the_recipe_and_its_names_are_labels() -> None:
    """Weights are what is packed; without others, a recipe is what it was before there were mixtures."""
    other = {"name": "b", "ingest": {"dataset": "b", "source": "/b", "embodiment": "metaworld_sawyer"}}
    mixed = changed(load("tiny"), {"mixture.others": [other]})
    assert resolve(mixed).pack.weights == (1.0, 1.0) and resolve(load("tiny")).pack.weights == ()
    heavy = changed(mixed, {"mixture.others.0.weight": 2, "mixture.weight": 0.5})
    assert resolve(heavy).pack.weights == (0.5, 2.0)
    assert fingerprint(resolve(heavy).mix) == fingerprint(resolve(mixed).mix)
    assert fingerprint(changed(mixed, {"mixture.others.0.name": "c"})) == fingerprint(mixed) != fingerprint(heavy)
    assert fingerprint(changed(load("tiny"), {"mixture.others": []})) == fingerprint(load("tiny"))
    assert fingerprint(changed(load("tiny"), {"ingest.exclude": []})) == fingerprint(load("tiny"))
    with pytest.raises(UserError, match="PACK-014"):
        resolve(changed(mixed, {"mixture.others.0.name": "tiny"}))
    with pytest.raises(UserError, match="RECIPE-003"):
        changed(mixed, {"mixture.others.0.weight": -1})
    with pytest.raises(UserError, match="(?s)RECIPE-003.*1e.18 is not a number from 0 to 1,000,000"):
        changed(mixed, {"mixture.others.0.weight": 1e18})


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: resolved(name) for name in RECIPES}, indent=1, ensure_ascii=False) + "\n")


def test_how_a_source_is_read_is_set_as_in_a_recipe() -> None:
    settings = [
        'ingest.read.state=["obs/eef", "obs/gripper"]',
        "ingest.read.fps=30000/1001",
        "ingest.read.max_age_s=0.5",
    ]
    settings.append('ingest.read.grippers=[{"column": "action", "dim": 6, "open": -1, "closed": 1}]')
    found = read_spec(settings)
    assert found.state == ("obs/eef", "obs/gripper") and (found.fps, found.max_age_s) == ("30000/1001", 0.5)
    assert found.grippers == (GripperSpec(column="action", dim=6, open=-1, closed=1),)
    assert read_spec([]) == AS_THE_SOURCE_SAYS
    assert changed(load("gr1"), dict(assignment(each) for each in settings[:3])).ingest.read.state == found.state


@pytest.mark.parametrize("field", ["state", "action", "ignore_tasks", "state_units", "views"])
@pytest.mark.parametrize("words", ["[states]", "states", "['states']", "a=/b, c"])
def test_a_list_in_bare_words_is_answered_by_how_it_is_written(field: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        read_spec([f"ingest.read.{field}={words}"])
    assert refused.value.code == "RECIPE-003"
    read_spec(given_settings(refused.value.next_step))


@pytest.mark.parametrize("value", [5, 0.15, "header", "=pick up the cup", ["a b", "c'd"], {"front": '/cam"era'}])
def test_what_a_question_proposes_is_what_a_shell_and_the_recipe_take(value: Any) -> None:
    name = {int: "fps", float: "max_age_s", list: "state", dict: "views"}.get(type(value), "instruction")
    name = "clock" if value == "header" else name
    shown = asked(Path("a.bag"), name, "it", "what it may be", value).next_step
    found = getattr(read_spec(given_settings(shown)), name)
    assert (list(found) if isinstance(value, list) else found) == value


def test_a_source_is_opened_by_its_first_answers(shared_data: Path) -> None:
    for name in ("hdf5-robosuite-wipe-panda", "rlds-bridge-debug/1.0.0"):
        with pytest.raises(UserError) as refused:
            open_source(shared_data / name)
        answers = read_spec(given_settings(refused.value.next_step))
        assert open_source(shared_data / name, answers).card.num_episodes > 0


def given_settings(text: str) -> list[str]:
    """What stands after each --set, as a shell would give it."""
    return [shlex.split(each)[0].rstrip(";") for each in text.split("--set ")[1:]]


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("ingest.read.fsp=5", "RECIPE-002"),
        ("ingest.dataset=other", "RECIPE-002"),
        ("ingest.read.colour_order=gbr", "RECIPE-003"),
        ("ingest.read.max_age_s=-1", "RECIPE-003"),
        ('ingest.read.grippers=[{"column": "legs"}]', "RECIPE-003"),
    ],
)
def test_a_setting_that_no_source_is_read_with(setting: str, code: str) -> None:
    with pytest.raises(UserError) as refused:
        read_spec([setting])
    assert refused.value.code == code


@pytest.mark.parametrize(("views", "words"), [((), "at least one view"), (("front", "front"), "no view twice")])
def test_a_policy_is_shown_each_view_once(views: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=f"RECIPE-003: policy.inputs.views: {words}"):
        changed(load("tiny"), {"policy.inputs.views": list(views)})
