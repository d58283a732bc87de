"""How data and numbers stand in text for people: what would steer a terminal is shown, and plurals are right."""

import re

UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 and C1 controls; marks that turn the direction of what follows (Unicode UAX 9); line ends of Unicode; halves of
surrogate pairs, which no encoding can write."""


def printable(text: str, keep: str = "") -> str:
    r"""`text` with each character that would steer a terminal, but for those of `keep`, shown as `\x1b`, `\u202e`, …"""
    return UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else repr(found[0])[1:-1], text)


def counted(number: int, noun: str) -> str:
    """`1 episode`, `1,200 episodes`, `-1 video`."""
    return f"{number:,} {noun}" + ("" if abs(number) == 1 else "s")
