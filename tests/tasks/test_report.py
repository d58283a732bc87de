"""The report: one page that asks for nothing, shows everything, and believes no text."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tasks.lineage import Record, lineage
from tasks.report import build_report, duration, verdict
from tests.tasks import fabricated

Finished = tuple[Path, dict[str, Record]]


class Page(HTMLParser):
    """Collects tags with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + " "

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="session", params=["tiny", "gr1"])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A lake with one whole run, and its records."""
    root = tmp_path_factory.mktemp("report")
    runtime, ref = fabricated.run(root / "lake", root / "home", request.param)
    return runtime.lake, lineage(runtime.lake, [ref])


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    root = tmp_path_factory.mktemp("report")
    runtime, ref = fabricated.run(root / "lake", root / "home", "tiny")
    return runtime.lake, lineage(runtime.lake, [ref])


def test_the_page_asks_for_nothing(finished: Finished) -> None:
    page = Page(build_report(*finished))
    for tag, attributes in page.tags:
        assert tag not in ("script", "link", "iframe", "object", "img", "base")
        for name in ("src", "href", "poster", "action"):
            assert (attributes.get(name) or "data:").startswith("data:")
    html = build_report(*finished)
    assert "://" not in re.sub(r"data:video/mp4;base64,[A-Za-z0-9+/=]+", "", html)
    assert "@import" not in html
    assert "url(" not in html


def test_the_verdict_comes_first(tiny: Finished) -> None:
    text = Page(build_report(*tiny)).text
    assert text.index("Champion") < text.index("first version, all gates passed") < text.index("Success per task")


def test_it_shows_what_a_reader_asks_for(tiny: Finished) -> None:
    lake, chain = tiny
    text = " ".join(Page(build_report(lake, chain, command="./vlaloop run tiny --set train.seed=1")).text.split())
    for shown in (
        "tiny v1", "93 %", "95 %: 86 % to 97 %", "27/30", "Collision 3 of 90", "1.1 % of the time spent waiting",
        "248 episodes in, 247 ok, 1 in quarantine", "LAKE-007", "97.8 %", "Relative error by layer",
        "language part 49.9 % smaller".capitalize(), "./vlaloop run tiny --set train.seed=1", "5c1e77aa90b2d413",
        chain["train"]["fingerprint"][:8], "torch 2", "policy.action_horizon",
    ):  # fmt: skip
        assert shown in text, shown


def test_failures_come_first_and_every_video_says_what_it_shows(tiny: Finished) -> None:
    videos = Page(build_report(*tiny)).all("video")
    spoken = [attributes["aria-label"] or "" for attributes in videos]
    assert [label.split(":")[0] for label in spoken] == ["Failure", "Success", "Success"]
    assert all((attributes["src"] or "").startswith("data:video/mp4;base64,") for attributes in videos)


def test_every_picture_has_words(finished: Finished) -> None:
    page = Page(build_report(*finished))
    pictures = [attributes for _, attributes in page.tags if attributes.get("role") == "img"]
    assert len(pictures) >= 5
    assert all(len(attributes["aria-label"] or "") > 20 for attributes in pictures)
    silent = [attributes for attributes in page.all("svg") if "aria-label" not in attributes]
    inner = [attributes for attributes in silent if attributes.get("aria-hidden") != "true"]
    assert all("viewbox" in attributes for attributes in inner)  # the plot inside a hidden drawing


def test_no_text_of_a_run_becomes_markup(tiny: Finished) -> None:
    html = build_report(*tiny, command=fabricated.EVIL)
    assert fabricated.EVIL not in html
    assert fabricated.EVIL in Page(html).text


def test_without_a_simulator_errors_stand_beside_the_baselines(tmp_path: Path) -> None:
    runtime, ref = fabricated.run(tmp_path / "lake", tmp_path / "home", "gr1")
    text = " ".join(Page(build_report(runtime.lake, lineage(runtime.lake, [ref]))).text.split())
    for shown in (
        "Challenger",
        "0.410",
        "current state",
        "0.580",
        "mean action",
        "No simulator has proved this policy",
    ):
        assert shown in text
    assert "Rollouts" not in text


@pytest.mark.parametrize("last", ["ingest", "pack", "train", "export", "evaluate"])
def test_a_run_that_is_not_finished_has_a_page_too(tiny: Finished, last: str) -> None:
    lake, chain = tiny
    stages = list(chain)
    partial = {stage: chain[stage] for stage in stages[: stages.index(last) + 1]}
    text = Page(build_report(lake, partial)).text
    assert "Not finished" in text
    assert f"the last finished stage is {last}" in text


@pytest.mark.parametrize(
    ("alias", "accepted", "word"),
    [("champion", True, "Champion"), ("challenger", False, "Challenger"), (None, False, "Not promoted")],
)
def test_the_verdict_follows_the_gate(tiny: Finished, alias: str | None, accepted: bool, word: str) -> None:
    record = tiny[1]["register"]
    ref = {**record["ref"], "alias": alias, "accepted": accepted, "decision": "because"}
    found = verdict({"register": {**record, "ref": ref}})
    assert (found["word"], found["is_good"], found["sentence"]) == (word, accepted, "because")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.42, "0.4 s"), (12.3, "12 s"), (464, "7m 44s"), (59.7, "1m 00s"), (7380, "2h 03m")]
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
