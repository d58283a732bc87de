"""features.json as a list of leaves, and which of them become state, action, views and words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_lake.sources.files import ODD, Unreadable
from data_lake.sources.rlds_features import Chosen, Leaf, choose, leaves_of, matrix, single, texts
from data_lake.specs import ReadSpec
from errors import UserError
from tests.data_lake import rlds_recordings as written
from tests.data_lake.rlds_recordings import TEXT, image, sequence, tensor, tree

ROOT = Path("cart/1.0.0")


def chosen(declared: dict[str, Any] | None = None, **read: Any) -> Chosen:
    return choose(ROOT, leaves_of(declared or written.features()), ReadSpec(**read))


def leaf(path: str, dtype: str = "float32", shape: tuple[int, ...] = (2,)) -> Leaf:
    return Leaf(path=path, kind="numbers", dtype=dtype, shape=shape, is_per_step=True)


def paths(leaves: tuple[Leaf, ...]) -> list[str]:
    return [each.path for each in leaves]


@pytest.mark.parametrize(
    ("node", "kind", "width"),
    [
        (tensor((7,)), "numbers", 7),
        (tensor((2, 3), "float64"), "numbers", 6),
        (tensor((), "bool"), "numbers", 1),
        (tensor((), "int32"), "numbers", 1),
        (tensor((), "string"), "words", 1),
        (TEXT, "words", 1),
        (image(), "pictures", 16 * 16 * 3),
        (image((-1, -1, 3)), "pictures", 3),
        ({"image": {"encodingFormat": "png"}}, "pictures", 1),
        (image((16, 16, 1)), "other", 256),
        (image((16, 16, 3), dtype="uint16"), "other", 16 * 16 * 3),
        (tensor((-1,)), "other", -1),
        (tensor((0,)), "other", 0),
        (tensor((7,), encoding="zlib"), "other", 7),
        (tensor((7,), "string"), "other", 7),
        (sequence(tensor((7,))), "other", 1),
        ({"classLabel": {"numClasses": "3"}}, "other", 1),
    ],
)
def test_kinds_of_features(node: dict[str, Any], kind: str, width: int) -> None:
    found = leaves_of(tree(steps=sequence(tree(x=node)), y=node))
    assert found["steps/x"].kind == found["y"].kind == kind
    assert found["steps/x"].width == width
    assert found["steps/x"].is_per_step and not found["y"].is_per_step


@pytest.mark.parametrize("odd", [{"featuresDict": {}}, tree(a=None), {"tensor": {"shape": 3}}, {"featuresDict": 1}])
def test_what_is_no_features_json(odd: Any) -> None:
    with pytest.raises(ODD):
        leaves_of(odd)


def test_what_rlds_names_is_taken() -> None:
    found = chosen()
    assert paths(found.state) == ["steps/observation/state"] and paths(found.action) == ["steps/action"]
    assert {view: each.path for view, each in found.views.items()} == {
        "front": "steps/observation/front",
        "wrist": "steps/observation/wrist",
    }
    assert isinstance(found.instruction, Leaf) and found.instruction.path == "steps/language_instruction"
    proprio = chosen(written.features({"state": None, "proprio": tensor((4,)), "language_instruction": TEXT}))
    assert paths(proprio.state) == ["steps/observation/proprio"]


@pytest.mark.parametrize("prefix", ["", "steps/"])
def test_what_the_recipe_names_is_taken(prefix: str) -> None:
    """Paths with or without the leading steps/, concatenated in their order; D14: views under canonical names."""
    found = chosen(
        state=(f"{prefix}reward", f"{prefix}observation/state"),
        action=(f"{prefix}language_embedding",),
        views={"main": f"{prefix}observation/front"},
        instruction="episode_metadata/file_path",
    )
    assert paths(found.state) == ["steps/reward", "steps/observation/state"]
    assert paths(found.action) == ["steps/language_embedding"]
    assert {view: each.path for view, each in found.views.items()} == {"main": "steps/observation/front"}
    assert isinstance(found.instruction, Leaf) and not found.instruction.is_per_step
    assert chosen(instruction="=push the cube").instruction == "push the cube"


def test_words_of_the_observation() -> None:
    declared = written.features({"language_instruction": TEXT}, language_instruction=None)
    found = chosen(declared).instruction
    assert isinstance(found, Leaf) and found.path == "steps/observation/language_instruction"


RT1 = written.features(
    {"state": None, "base_pose": tensor((7,)), "natural_language_instruction": TEXT},
    action=tree(world_vector=tensor((3,)), gripper=tensor((1,)), terminate=tensor((3,), "int32")),
    language_instruction=None,
)


@pytest.mark.parametrize(
    ("read", "field", "choices"),
    [
        ({}, "state", "one or several of observation/base_pose, as in"),
        (
            {"state": ("observation/base_pose",)},
            "action",
            "of action/world_vector, action/gripper, action/terminate, as in",
        ),
        (
            {"state": ("observation/base_pose",), "action": ("action/gripper",)},
            "instruction",
            "observation/natural_language_instruction, episode_metadata/file_path or =the words, as in",
        ),
    ],
)
def test_what_is_not_settled_is_asked_for(read: dict[str, Any], field: str, choices: str) -> None:
    with pytest.raises(UserError) as error:
        chosen(RT1, **read)
    assert error.value.code == "LAKE-035"
    assert f"ingest.read.{field} " in error.value.next_step and choices in error.value.next_step


@pytest.mark.parametrize(
    ("read", "field"),
    [
        ({"state": ("observation/stat",)}, "state"),
        ({"state": ("observation/front",)}, "state"),
        ({"action": ("episode_metadata/number",)}, "action"),
        ({"views": {"front": "observation/state"}}, "views"),
        ({"views": {"front": "observation/depth"}}, "views"),
        ({"instruction": "push the cube"}, "instruction"),
    ],
)
def test_a_path_that_is_not_there_or_not_fit(read: dict[str, Any], field: str) -> None:
    with pytest.raises(UserError) as error:
        chosen(written.features({"depth": image((16, 16, 1), "uint16")}), **read)
    assert error.value.code == "LAKE-035" and f"ingest.read.{field} " in error.value.next_step
    (given,) = read.values()
    named = given if isinstance(given, str) else next(iter(given.values() if isinstance(given, dict) else given))
    assert repr(named) in error.value.message


def test_two_states_are_not_chosen_between() -> None:
    with pytest.raises(UserError, match="which of its features are the state"):
        chosen(written.features({"proprio": tensor((4,))}))


def test_views_below_others_keep_their_path() -> None:
    nested = written.features({"left": tree(image=image()), "right": tree(image=image())}, goal=image())
    assert list(chosen(nested).views) == ["front", "left_image", "right_image", "wrist"]


def test_success_is_one_number_of_the_episode() -> None:
    declared = written.features(success=tensor(dtype="bool"))
    assert chosen(declared).success is None
    declared["featuresDict"]["features"]["success"] = tensor()
    found = chosen(declared).success
    assert found is not None and found.path == "success"


def test_numbers_side_by_side() -> None:
    features = {"a": np.arange(6, dtype=np.float32), "b": np.array([7, 8, 9])}
    found = matrix(features, [leaf("b", "int64", ()), leaf("a")])
    assert found.dtype == np.float32 and found.tolist() == [[7, 0, 1], [8, 2, 3], [9, 4, 5]]


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({}, "a is missing"),
        ({"a": [b"1", b"2"]}, "declared float32"),
        ({"a": np.array([1, 2])}, "declared float32"),
        ({"a": np.zeros(5, np.float32)}, "2 steps of 2 and 1 more"),
        ({"a": np.zeros(8, np.float32)}, "b holds 3 steps, a 4"),
    ],
)
def test_numbers_that_are_not_as_declared(held: dict[str, Any], words: str) -> None:
    with pytest.raises(Unreadable, match=words) as refused:
        matrix({"b": np.zeros(3, np.float32), **held}, [leaf("a"), leaf("b", shape=())])
    assert refused.value.code == "LAKE-114"


WORDS = Leaf(path="w", kind="words", dtype="string", shape=(), is_per_step=True)
TOLD = Leaf(path="w", kind="words", dtype="string", shape=(), is_per_step=False)


def test_texts_of_steps_and_of_episodes() -> None:
    assert texts({"w": ["ä".encode(), b""]}, WORDS, 2) == ["ä", ""]
    assert texts({"w": [b"push"]}, TOLD, 3) == ["push"] * 3


@pytest.mark.parametrize(
    ("words", "told"),
    [(np.array([1.0]), WORDS), ([b"one"], WORDS), ([b"one", b"two"], TOLD), ([b"\xff", b"\xfe"], WORDS)],
)
def test_texts_that_are_not_as_declared(words: Any, told: Leaf) -> None:
    with pytest.raises(Unreadable) as refused:
        texts({"w": words}, told, 2)
    assert refused.value.code == "LAKE-114"


@pytest.mark.parametrize(
    ("values", "told", "expected"),
    [
        (np.array([1]), leaf("w", "bool", ()), True),
        (np.array([5]), leaf("w", "int32", ()), 5),
        (np.array([0.5], np.float32), leaf("w", "float32", ()), 0.5),
        ([b"raw/1.npy"], TOLD, "raw/1.npy"),
        ([b"raw"], leaf("w", "bool", ()), None),
        (np.array([1, 2]), leaf("w", "int32", ()), None),
        ([], TOLD, None),
    ],
)
def test_what_is_said_once(values: Any, told: Leaf, expected: Any) -> None:
    found = single({"w": values}, told)
    assert found == expected and type(found) is type(expected)
    assert single({}, told) is None


def test_features_of_bridge(shared_data: Path) -> None:
    declared = json.loads((shared_data / "rlds-bridge-debug/1.0.0/features.json").read_text())
    found = chosen(declared)
    assert list(found.views) == ["image_0", "image_1", "image_2", "image_3"]
    assert [each.width for each in (*found.state, *found.action)] == [7, 7]
    assert leaves_of(declared)["steps/language_embedding"].shape == (512,)
