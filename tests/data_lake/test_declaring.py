"""What an ingest says is filled in where nobody said it, and refused where it contradicts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data_lake.declaring import Declared, differences
from data_lake.ingest import ingest_source
from data_lake.meaning import MEANT, MEANT_WHERE_SAID
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.tables import read_manifest, versions
from data_lake.version import open_version
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest

LENGTHS = (5, 6)


def saying(**read: Any) -> IngestSpec:
    return replace(SPEC, read=ReadSpec(**read))


def meanings(root: Path) -> list[dict[str, Any]]:
    return [json.loads(row["meaning"]) for row in open_version(root.parent.parent, root.name).episodes]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "datasets/cart"


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def test_what_was_not_said_is_filled_in_as_a_version_without_new_rows(v2: Path, root: Path) -> None:
    ingest(v2, root)
    before = read_manifest(root)
    done = ingest(v2, root, saying(action_mode="absolute", state_units=("m", "m", "m")))
    after = read_manifest(root)
    assert before and after and (done.num_new, after.version) == (0, 2)
    assert {name: after.vector[name] for name in ("frames", "videos")} == {
        name: before.vector[name] for name in ("frames", "videos")
    }
    assert [(each["action_mode"], each["state_units"]) for each in meanings(root)] == [("absolute", ["m"] * 3)] * 2
    assert after.edit == {
        "declare": {"num_episodes": 2, "meaning": {"action_mode": "absolute", "state_units": ["m"] * 3}}
    }
    ingest(v2, root, saying(action_mode="absolute"))
    ingest(v2, root)  # says less, and takes nothing back
    assert versions(root) == [1, 2]


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ({"colour_order": "rgb"}, {"colour_order": "bgr"}, "colour_order rgb; this ingest says bgr"),
        ({"image_orientation": "upright"}, {"image_orientation": "upside_down"}, "image_orientation upright; .*upside"),
        ({"action_mode": "absolute"}, {"action_mode": "delta"}, "action_mode absolute; this ingest says delta"),
        ({"action_units": ("m", "m")}, {"action_units": ("m", "mm")}, "action_units"),
    ],
)
def test_a_contradiction_names_both_and_changes_nothing(
    v2: Path, root: Path, tmp_path: Path, first: dict[str, Any], then: dict[str, Any], words: str
) -> None:
    """Of episodes that are held, and of new ones."""
    ingest(v2, root, saying(**first))
    with pytest.raises(UserError, match=words) as refused:
        ingest(v2, root, saying(**then))
    assert refused.value.code == "LAKE-006" and f"ingest.read.{next(iter(then))}" in refused.value.next_step
    more = write_v2(tmp_path / "more", (9,))
    with pytest.raises(UserError, match=f"{next(iter(then))} .* there, .* here") as refused:
        ingest(more, root, saying(**then))
    assert refused.value.code == "LAKE-006" and versions(root) == [1]


def test_new_episodes_say_what_those_that_are_held_say(v2: Path, root: Path, tmp_path: Path) -> None:
    """A source that grew may say more: what it brought earlier is filled in first; another source may not."""
    ingest(v2, root, saying(action_mode="absolute"))
    grown = write_v2(tmp_path / "grown", (*LENGTHS, 7))
    with pytest.raises(UserError, match=r"action_mode \(absolute there, not said here\)") as refused:
        ingest(grown, root)
    assert "set ingest.read.action_mode" in refused.value.next_step
    unsaid = root.with_name("unsaid")
    ingest(v2, unsaid)
    with pytest.raises(UserError, match=r"action_mode \(not said there, absolute here\)"):
        ingest(write_v2(tmp_path / "more", (9,)), unsaid, saying(action_mode="absolute"))
    assert ingest(grown, unsaid, saying(action_mode="absolute")).num_new == 1
    assert [each["action_mode"] for each in meanings(unsaid)] == ["absolute"] * 3


def test_another_robot_is_refused_even_where_all_is_held(v2: Path, root: Path) -> None:
    ingest(v2, root)
    for folder in (v2, write_v2(v2.with_name("more"), (9,))):
        with pytest.raises(UserError, match="'crane'") as refused:
            ingest_source(folder, replace(SPEC, embodiment="crane"), dataset_root=root, out_dir=root.parent / "out")
        assert refused.value.code == "LAKE-006" and SPEC.embodiment in refused.value.message


VALUES: dict[str, tuple[Any, Any]] = {"fps": (10.0, 20.0), "render_every": (1, 4)}


@pytest.mark.parametrize("name", [*MEANT, *MEANT_WHERE_SAID])
def test_everything_that_is_identity_is_compared(name: str) -> None:
    one, other = VALUES.get(name, (["a"], ["b"]))
    assert [each[0] for each in differences({name: one}, {name: other})] == [name]
    assert not list(differences({name: one}, {name: tuple(one) if isinstance(one, list) else one}))
    declared = Declared(dataset="d", source="s", recorded=[json.dumps({name: one})], said={name: other})
    with pytest.raises(UserError, match=name):
        declared.of_new()
