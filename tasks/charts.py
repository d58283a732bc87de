"""Draws the charts of a report as inline SVG with labels beside it: text keeps its size on any screen.

Colours come from the page's style sheet by class; every chart says in words what it shows. All text is escaped.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

MOST_POINTS, COLOURS = 120, 8  # of a trace; of lines, which are then dashed in eight ways
BOX_HEIGHT, ROW_HEIGHT, BOX_WIDTH, GUTTER = 40, 64, 112, 58  # pixels, of the lineage graph


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """`value`, `low` and `high` are fractions of the chart's width; `text` is what stands at the end."""

    label: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    is_muted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A box of the lineage graph; `inputs` are the names of the boxes that it is made from."""

    name: str
    note: str
    inputs: tuple[str, ...]


def bars(rows: Sequence[Bar], *, alt: str) -> Markup:
    """Horizontal bars, with interval whiskers where they are given."""
    drawn = "".join(_bar(row) for row in rows)
    return _drawn(f'<div class="bars" role="img" aria-label="{escape(alt)}">{drawn}</div>')


def _bar(row: Bar) -> str:
    kind = "bar muted" if row.is_muted else "bar"
    shapes = (
        '<rect class="track" width="100%" height="12" y="6" rx="6"/>'
        f'<rect class="{kind}" width="{_percent(row.value)}" height="12" y="6" rx="6"/>'
    )
    if row.low is not None and row.high is not None:
        low, high = _percent(row.low), _percent(row.high)
        ends = ((low, high, 12, 12), (low, low, 6, 18), (high, high, 6, 18))
        shapes += "".join(
            f'<line class="{kind}" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'
            for kind in ("halo", "whisker")
            for x1, x2, y1, y2 in ends
        )
    svg = f'<svg width="100%" height="24" aria-hidden="true">{shapes}</svg>'
    label, value = f'<span class="label">{escape(row.label)}</span>', f'<span class="value">{escape(row.text)}</span>'
    return f'<div class="row">{label}{svg}{value}</div>'


def _drawn(markup: str) -> Markup:
    return Markup(markup)  # noqa: S704  every text in it went through escape


def _percent(fraction: float) -> str:
    return f"{100 * min(max(fraction, 0.0), 1.0):.2f}%"


def line(points: Sequence[tuple[float, float]], *, alt: str, x_unit: str, smooth: int = 0) -> Markup:
    """One series over x, y from zero: faint as it is, and strong as the mean over `smooth` neighbours either side."""
    points = [(x, y) for x, y in points if math.isfinite(y)]
    if len(points) < 2:
        return _drawn('<p class="none">Too few points to draw.</p>')
    points = thinned(points, 600)
    ticks = scale(min(0.0, *(y for _, y in points)), max(y for _, y in points))
    spans = (points[0][0], points[-1][0], ticks[0], ticks[-1])
    strong = _path(smoothed(points, smooth), spans)
    faint = f'<polyline class="faint" points="{_path(points, spans)}"/>' if smooth else ""
    box = 'width="100%" height="100%" viewBox="0 0 1000 1000" preserveAspectRatio="none"'
    plot = f'<svg {box}>{faint}<polyline class="strong" points="{strong}"/></svg>'
    return _framed(plot, ticks, (f"{points[0][0]:,.0f}", f"{points[-1][0]:,.0f} {x_unit}"), alt)


def traces(rows: Sequence[Sequence[float]], *, names: Sequence[str], seconds: float, alt: str) -> Markup:
    """A thin line per dimension of `rows` (T, D) over `seconds`; the mouse over one tells its name."""
    places = [round(place * (len(rows) - 1) / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]
    kept = [rows[place] for place in (places if len(rows) > MOST_POINTS else range(len(rows)))]
    ticks = scale(min(min(row) for row in kept), max(max(row) for row in kept))
    spans = (0.0, max(1.0, len(kept) - 1.0), ticks[0], ticks[-1])
    lines = "".join(
        f'<polyline class="c{number % COLOURS} t{number // COLOURS % COLOURS}"'
        f' points="{_path([*enumerate(values)], spans)}"><title>{escape(name)}</title></polyline>'
        for number, (name, values) in enumerate(zip(names, zip(*kept, strict=True), strict=True))
    )
    box = 'width="100%" height="100%" viewBox="0 0 1000 1000" preserveAspectRatio="none"'
    return _framed(f'<svg class="traces" {box}>{lines}</svg>', ticks, ("0", f"{seconds:.1f} s"), alt)


def columns(heights: Sequence[float], *, alt: str, ends: tuple[str, str]) -> Markup:
    """Vertical bars side by side: a histogram from `ends[0]` to `ends[1]`."""
    ticks = scale(0.0, max(heights, default=1.0))
    width = 100 / max(len(heights), 1)
    shapes = "".join(
        f'<rect class="bar" x="{(index + 0.08) * width:.2f}%" width="{0.84 * width:.2f}%"'
        f' y="{100 - 100 * height / ticks[-1]:.2f}%" height="{100 * height / ticks[-1]:.2f}%"/>'
        for index, height in enumerate(heights)
        if height
    )
    return _framed(shapes, ticks, ends, alt)


def _framed(shapes: str, ticks: Sequence[float], ends: tuple[str, str], alt: str) -> Markup:
    """A plot with horizontal lines at `ticks`, their numbers at its left, and the ends of x below."""
    top, bottom = ticks[-1], ticks[0]
    places = [100 * (1 - (tick - bottom) / (top - bottom)) for tick in ticks]
    lines = "".join(f'<line class="grid" x1="0" x2="100%" y1="{y:.2f}%" y2="{y:.2f}%"/>' for y in places)
    numbers = "".join(f'<span style="top:{y:.2f}%">{tick:,.4g}</span>' for y, tick in zip(places, ticks, strict=True))
    return _drawn(
        f'<div class="plot" role="img" aria-label="{escape(alt)}"><div class="ticks" aria-hidden="true">{numbers}</div>'
        f'<svg width="100%" height="180" aria-hidden="true">{lines}{shapes}</svg>'
        f'<div class="ends" aria-hidden="true"><span>{escape(ends[0])}</span><span>{escape(ends[1])}</span></div></div>'
    )


def lineage(nodes: Sequence[Node], *, alt: str) -> Markup:
    """Boxes below one another, each with lines from all that it is made from; rows are ROW_HEIGHT pixels."""
    place: Mapping[str, int] = {node.name: index for index, node in enumerate(nodes)}
    edges = "".join(
        _edge(place[source], place[node.name]) for node in nodes for source in node.inputs if source in place
    )
    boxes = "".join(_box(index, node) for index, node in enumerate(nodes))
    width, height = GUTTER + BOX_WIDTH + 2, ROW_HEIGHT * len(nodes)
    size = f'width="{width}" height="{height}"'
    return _drawn(f'<svg class="lineage" role="img" aria-label="{escape(alt)}" {size}>{edges}{boxes}</svg>')


def _box(index: int, node: Node) -> str:
    top = index * ROW_HEIGHT + (ROW_HEIGHT - BOX_HEIGHT) // 2
    centre = GUTTER + BOX_WIDTH / 2
    return (
        f'<rect class="box" x="{GUTTER}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8"/>'
        f'<text class="name" x="{centre}" y="{top + 17}">{escape(node.name)}</text>'
        f'<text class="note" x="{centre}" y="{top + 32}">{escape(node.note)}</text>'
    )


def _edge(source: int, target: int) -> str:
    """Straight down to the next box; round the boxes between through the left gutter, the wider the further."""
    start, end = (source + 0.5) * ROW_HEIGHT + BOX_HEIGHT / 2, (target + 0.5) * ROW_HEIGHT - BOX_HEIGHT / 2
    if target == source + 1:
        x = GUTTER + BOX_WIDTH / 2
        return f'<path class="edge" d="M{x} {start}V{end}"/>'
    start, end = (source + 0.5) * ROW_HEIGHT + 8, (target + 0.5) * ROW_HEIGHT - 8
    reach = GUTTER - 14 * (target - source - 1) - 6
    return f'<path class="edge" d="M{GUTTER} {start}C{reach} {start} {reach} {end} {GUTTER} {end}"/>'


def scale(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    span = (high - low) or abs(high) or 1.0
    magnitude = 10 ** math.floor(math.log10(span / wanted))
    step = next(magnitude * factor for factor in (1, 2, 2.5, 5, 10) if magnitude * factor * wanted >= span * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [step * index for index in range(first, max(last, first + 1) + 1)]


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most `most` points, each the mean of its neighbours; the first and the last x stay."""
    size = math.ceil(len(points) / most)
    if size == 1:
        return list(points)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    means = [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
    return [(points[0][0], means[0][1]), *means[1:-1], (points[-1][0], means[-1][1])]


def smoothed(points: Sequence[tuple[float, float]], reach: int) -> list[tuple[float, float]]:
    """Every y as the mean over `reach` neighbours on either side, fewer at the ends so that it stays centred."""
    found = []
    for index, (x, _) in enumerate(points):
        near = min(reach, index, len(points) - 1 - index)
        window = points[index - near : index + near + 1]
        found.append((x, sum(y for _, y in window) / len(window)))
    return found


def _path(points: Sequence[tuple[float, float]], spans: tuple[float, float, float, float]) -> str:
    left, right, bottom, top = spans
    return " ".join(
        f"{1000 * (x - left) / (right - left):.1f},{1000 * (1 - (y - bottom) / (top - bottom)):.1f}" for x, y in points
    )
