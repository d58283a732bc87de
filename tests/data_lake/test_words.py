"""What is printed cannot rule a terminal, and can be told from what else there is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.words import counted, printable

STEERING = [chr(code) for code in (*range(0x20), 0x7F, *range(0x80, 0xA0))]
TURNING = [chr(code) for code in range(0x110000) if unicodedata.bidirectional(chr(code)) in
           ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")]  # fmt: skip


@pytest.mark.parametrize("character", [*STEERING, *TURNING, "\u2028", "\u2029", "\udcff"])
def test_what_steers_is_shown(character: str) -> None:
    assert printable(f"a{character}b").isascii() and len(printable(f"a{character}b")) > 3
    assert printable(character, keep=character) == character


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_words_of_any_language_are_left_alone(text: str) -> None:
    assert printable(text) == text


def test_shown_as_python_writes_it() -> None:
    assert printable("\x1b[2J\x9b\u202e\n\t") == "\\x1b[2J\\x9b\\u202e\\n\\t"
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


@pytest.mark.parametrize(("number", "told"), [(0, "0 episodes"), (1, "1 episode"), (1200, "1,200 episodes")])
def test_counted(number: int, told: str) -> None:
    assert counted(number, "episode") == told
