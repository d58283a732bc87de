"""Identity is canonical: golden across Python versions, blind to labels, deaf to neutral defaults."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.identity import canonical, differences, dumps, fingerprint, flat

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/identity.json").read_text())


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner
    steps: int
    title: str = field(metadata={"label": True})
    late: int = field(default=7, metadata={"neutral": True})


VALUE = Outer(inner=Inner(rate=0.1, names=("a", "ö")), steps=3, title="x")


def test_labels_and_neutral_defaults_are_not_identity() -> None:
    assert fingerprint(VALUE) == fingerprint(replace(VALUE, title="renamed"))
    assert canonical(VALUE) == {"inner": {"rate": 0.1, "names": ["a", "ö"]}, "steps": 3}


def test_a_neutral_field_off_its_default_is_identity() -> None:
    assert differences(canonical(VALUE), canonical(replace(VALUE, late=8))) == ["late: (absent) -> 8"]


def test_differences_name_the_field_and_both_values() -> None:
    changed = replace(VALUE, inner=replace(VALUE.inner, rate=0.5))
    assert differences(canonical(VALUE), canonical(changed)) == ["inner.rate: 0.1 -> 0.5"]


@pytest.mark.parametrize("value", [print, {1: 2}, {1, 2}, Path("x"), float("nan"), float("inf"), b"x"])
def test_what_has_no_stable_form_raises(value: object) -> None:
    with pytest.raises(TypeError):
        fingerprint(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_canonical_is_idempotent_and_survives_json(value: object) -> None:
    once = canonical(value)
    assert dumps(canonical(once)) == dumps(once)
    assert fingerprint(json.loads(dumps(once))) == fingerprint(value)


@given(st.dictionaries(st.text(min_size=1), st.integers()))
def test_order_of_keys_is_nothing(value: dict[str, int]) -> None:
    assert fingerprint(dict(reversed(value.items()))) == fingerprint(value)


@given(JSON, JSON)
def test_no_differences_exactly_when_equal(old: object, new: object) -> None:
    same = dumps(flat(canonical(old))) == dumps(flat(canonical(new)))
    assert (differences(canonical(old), canonical(new)) == []) == same


def test_an_integer_is_not_the_float_of_the_same_value() -> None:
    assert differences({"a": 1}, {"a": 1.0}) == ["a: 1 -> 1.0"]
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.0})


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from data_lake.identity import fingerprint
cases = json.loads(open(sys.argv[2]).read())
print(json.dumps([fingerprint(case["value"]) for case in cases]))
"""


def interpreters() -> list[str]:
    named = (shutil.which(name) for name in ("python3.11", "python3.12", "python3.13", "python3.14"))
    works = [path for path in named if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0]
    return [sys.executable, *works]


@pytest.mark.parametrize("python", interpreters())
def test_golden_fingerprints_hold_in_every_interpreter(python: str) -> None:
    run = subprocess.run(
        [python, "-c", SCRIPT, str(ROOT), str(ROOT / "tests/golden/identity.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == [case["fingerprint"] for case in GOLDEN]
