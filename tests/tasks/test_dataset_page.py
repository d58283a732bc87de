"""The page about a data set: one file that asks for nothing, with pictures and a line per dimension of each episode."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tasks.dataset_page import MOST_EPISODES, MOST_PICTURES, PER_STRIP, build_page, chosen_places, write_page
from tests.conftest import chromium
from tests.data_lake.recordings import CAMERA, rows_of, write_v2
from tests.data_lake.seen import ingest
from tests.tasks.fabricated import EVIL
from tests.tasks.test_report import Page

LENGTHS = (8, 12, 10)


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    root = tmp_path_factory.mktemp("page")
    ingest(write_v2(root / "source", LENGTHS), root / "lake/datasets/cart")
    return open_version(root / "lake", "cart")


@pytest.fixture(scope="module")
def html(version: DatasetVersion) -> str:
    return build_page(version, [0, 1, 2])


def test_it_asks_for_nothing(html: str) -> None:
    for tag, attributes in Page(html).tags:
        assert tag not in ("script", "link", "iframe", "object", "base")
        for name in ("src", "href", "poster", "action"):
            assert (attributes.get(name) or "#").startswith(("data:image/jpeg;base64,", "#"))
    assert "://" not in html and "@import" not in html and "url(" not in html


def test_it_shows_each_episode(html: str) -> None:
    page = Page(html)
    text = " ".join(page.text.split())
    for shown in (
        "cart@1",
        "Episodes 3 1 source",
        "All 3.",
        "push the cube",
        "12 rows · 1.2 s · episode 1 of source",
        "32×32",
    ):
        assert shown.casefold() in text.casefold(), shown
    pictures = [attributes["alt"] for attributes in page.all("img")]
    assert pictures[:3] == [f"front, episode 0, frame {frame}" for frame in (0, 4, 7)] and len(pictures) == 9
    anchors = {attributes["href"] for attributes in page.all("a")}
    assert anchors == {f"#{attributes['id']}" for attributes in page.all("article")}


def test_a_line_per_dimension_follows_the_rows(html: str) -> None:
    """x of the first episode climbs from 0 by 0.5 a row, on an axis from 0 to 4: 1000 at the bottom of the plot."""
    first = re.findall(r'<polyline class="c(\d) t0" points="([^"]+)"><title>(\w+)</title>', html)[:3]
    assert [(colour, name) for colour, _, name in first] == [("0", "x"), ("1", "y"), ("2", "z")]
    drawn = [tuple(map(float, point.split(","))) for point in first[0][1].split()]
    climbing = rows_of(0, 8, 0)["observation.state"].to_pylist()
    expected = [(1000 * row / 7, 1000 * (1 - values[0] / 4)) for row, values in enumerate(climbing)]
    assert drawn == [pytest.approx(point, abs=0.06) for point in expected]


def test_what_cannot_be_decoded_is_said_in_its_place(version: DatasetVersion) -> None:
    rows = version.episode_rows
    name = f"videos/{CAMERA}/to_timestamp"
    late = pa.array([0.8, 99.0, 1.0])
    from_name = f"videos/{CAMERA}/from_timestamp"
    broken = rows.set_column(rows.column_names.index(name), name, late)
    broken = broken.set_column(broken.column_names.index(from_name), from_name, pa.array([0.0, 90.0, 0.0]))
    page = Page(build_page(replace(version, episode_rows=broken), [0, 1]))
    assert "DECODE-004" in page.text and len(page.all("img")) == 3


def test_no_text_of_a_recording_becomes_markup(version: DatasetVersion) -> None:
    rows = version.episode_rows
    for name in ("instruction", "source"):
        rows = rows.set_column(rows.column_names.index(name), name, pa.array([EVIL] * len(LENGTHS)))
    html = build_page(replace(version, episode_rows=rows), [0])
    assert EVIL not in html and EVIL in Page(html).text


@pytest.mark.parametrize(("num_episodes", "num_cameras"), [(1, 0), (47, 2), (100_000, 0), (100_000, 3), (9, 500)])
def test_episodes_are_chosen_evenly_and_few_enough(num_episodes: int, num_cameras: int) -> None:
    places = chosen_places(num_episodes, num_cameras)
    assert places[0] == 0 and sorted(set(places)) == places
    assert len(places) <= MOST_EPISODES
    assert len(places) == 1 or len(places) * PER_STRIP * num_cameras <= MOST_PICTURES
    if len(places) > 1:
        assert places[-1] == num_episodes - 1
        gaps = [after - before for before, after in pairwise(places)]
        assert max(gaps) - min(gaps) <= 1


def test_a_file_that_cannot_be_written_is_named(version: DatasetVersion, tmp_path: Path) -> None:
    written = write_page(version, tmp_path / "cart.html")
    assert written.path.stat().st_size == written.num_bytes and written.num_shown == 3
    with pytest.raises(UserError, match="LAKE-191"):
        write_page(version, tmp_path / "no" / "cart.html")


@pytest.mark.browser
def test_a_browser_shows_it_without_a_word_of_complaint(html: str, tmp_path: Path) -> None:
    """Pictures are decoded, lines have a size, nothing is wider than a phone, and nothing goes to the network."""
    from playwright.sync_api import sync_playwright

    (tmp_path / "cart.html").write_text(html, encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "cart.html").as_uri())
        widths = page.evaluate("[...document.images].map(image => image.naturalWidth)")
        lines = page.evaluate("[...document.querySelectorAll('.traces')].map(svg => svg.getBoundingClientRect().width)")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        browser.close()
    assert widths == [32] * 9 and len(lines) == 6 and min(lines) > 100 and wide <= 0
    assert not said and all(url.startswith(("file:", "data:")) for url in asked)
