"""Charts: numbers land where they should, and no text becomes markup."""

import math
import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from tasks.charts import Bar, Node, bars, columns, line, lineage, scale, smoothed, thinned, traces

EVIL = '</svg><script>"&'


def parsed(markup: str) -> ET.Element:
    """Well-formed XML, or this raises."""
    return ET.fromstring(f"<root>{markup}</root>")


def test_a_bar_is_as_long_as_its_value_and_its_whiskers_sit_at_the_interval() -> None:
    drawn = parsed(bars([Bar(label="a", value=0.9, text="27/30", low=0.74, high=0.97)], alt="x"))
    assert [each.get("width") for each in drawn.iter("rect")] == ["100%", "90.00%"]
    whiskers = [(each.get("x1"), each.get("x2")) for each in drawn.iter("line") if each.get("class") == "whisker"]
    assert whiskers == [("74.00%", "97.00%"), ("74.00%", "74.00%"), ("97.00%", "97.00%")]


def test_values_beyond_the_chart_are_cut() -> None:
    drawn = parsed(bars([Bar(label="a", value=1.7, text=""), Bar(label="b", value=-1.0, text="")], alt="x"))
    assert [each.get("width") for each in drawn.iter("rect")] == ["100%", "100.00%", "100%", "0.00%"]


def test_a_line_goes_from_corner_to_corner() -> None:
    (strong,) = parsed(line([(0, 0.0), (5, 0.5), (10, 1.0)], alt="x", x_unit="steps")).iter("polyline")
    assert strong.get("points") == "0.0,1000.0 500.0,500.0 1000.0,0.0"


def test_a_line_skips_what_is_not_finite_and_needs_two_points() -> None:
    (strong,) = parsed(line([(0, 1.0), (1, math.nan), (2, 1.0)], alt="x", x_unit="s")).iter("polyline")
    assert len((strong.get("points") or "").split()) == 2
    assert "Too few points" in line([(0, 1.0), (1, math.inf)], alt="x", x_unit="s")


def test_columns_fill_the_height_by_their_share_of_the_top_tick() -> None:
    drawn = parsed(columns([10, 0, 20], alt="x", ends=("0", "1")))
    assert [each.get("height") for each in drawn.iter("rect")] == ["50.00%", "100.00%"]


def test_lineage_links_neighbours_straight_and_others_round_the_side() -> None:
    nodes = [Node(name="a", note="1", inputs=()), Node(name="b", note="2", inputs=("a",)),
             Node(name="c", note="3", inputs=("a", "b", "absent"))]  # fmt: skip
    paths = [each.get("d") or "" for each in parsed(lineage(nodes, alt="x")).iter("path")]
    assert len(paths) == 3
    assert sum("C" in path for path in paths) == 1


def test_no_text_becomes_markup() -> None:
    pictures = [
        bars([Bar(label=EVIL, value=0.5, text=EVIL)], alt=EVIL),
        line([(0, 1.0), (1, 2.0)], alt=EVIL, x_unit=EVIL),
        columns([1.0], alt=EVIL, ends=(EVIL, EVIL)),
        lineage([Node(name=EVIL, note=EVIL, inputs=())], alt=EVIL),
    ]
    for picture in pictures:
        assert "<script>" not in picture
        assert parsed(picture)[0].get("aria-label") == EVIL


def test_ticks_by_hand() -> None:
    assert scale(0, 100) == [0, 25, 50, 75, 100]
    assert [round(tick, 9) for tick in scale(0, 0.63)] == [0, 0.2, 0.4, 0.6, 0.8]
    assert scale(0, 0) == [0.0, 0.25]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_enclose_the_values(low: float, span: float) -> None:
    ticks = scale(low, low + span)
    slack = 1e-6 * (abs(low) + span)
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + span - slack
    assert 2 <= len(ticks) <= 8


def test_thinning_keeps_the_ends_and_the_mean() -> None:
    points = [(float(x), float(x % 2)) for x in range(1000)]
    few = thinned(points, 100)
    assert (len(few), few[0][0], few[-1][0]) == (100, 0.0, 999.0)
    assert {y for _, y in few} == {0.5}
    assert thinned(points[:5], 100) == points[:5]


def test_smoothing_keeps_a_straight_line() -> None:
    points = [(float(x), 2.0 * x) for x in range(9)]
    assert smoothed(points, 3) == points


def test_alt_texts_reach_the_reader() -> None:
    assert re.search(r'role="img" aria-label="Success: a 1/2\."', bars([], alt="Success: a 1/2."))


def test_traces_are_a_named_line_per_dimension() -> None:
    drawn = parsed(traces([[0.0, 4.0], [2.0, 4.0], [4.0, 4.0]], names=["x", EVIL], seconds=1.0, alt="x"))
    moving, still = drawn.iter("polyline")
    assert moving.get("points") == "0.0,1000.0 500.0,500.0 1000.0,0.0"
    assert still.get("points") == "0.0,0.0 500.0,0.0 1000.0,0.0"
    assert [each.findtext("title") for each in (moving, still)] == ["x", EVIL]


def test_long_traces_keep_their_ends_and_stay_light() -> None:
    climbing = [[row / 4999] for row in range(5000)]
    (drawn,) = parsed(traces(climbing, names=["x"], seconds=1.0, alt="x")).iter("polyline")
    points = (drawn.get("points") or "").split()
    assert len(points) == 120 and (points[0], points[-1]) == ("0.0,1000.0", "1000.0,0.0")
