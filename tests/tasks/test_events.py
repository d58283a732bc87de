"""Events are whole lines, whoever writes them at once; a torn last line is not read."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tasks.events import StageEvents, events_path, read_events
from tasks.runtime import Note, Progress, Report, Runtime, Summary


def events(tmp_path: Path, sink: list[Report]) -> StageEvents:
    runtime = Runtime(lake=tmp_path, home=tmp_path, run_id="r", sink=sink.append)
    return StageEvents(stage="train", slot="f", runtime=runtime)


def test_reports_become_lines_and_go_on_to_the_sink(tmp_path: Path) -> None:
    seen: list[Report] = []
    reports = [Note(text="n"), Progress(done=1, total=2, unit="steps", figures={"loss": 0.5}), Summary(line="s")]
    for report in reports:
        events(tmp_path, seen).report(report)
    assert seen == reports
    note, progress, summary = read_events(tmp_path, "r")
    assert (note["event"], note["text"], summary["line"]) == ("note", "n", "s")
    assert progress["figures"] == {"loss": 0.5} and progress["stage"] == "train"


def test_lines_of_many_writers_do_not_mix(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: events(tmp_path, []).write("note", text="x" * 500, i=i), range(200)))
    assert sorted(event["i"] for event in read_events(tmp_path, "r")) == list(range(200))


def test_a_torn_line_waits(tmp_path: Path) -> None:
    events(tmp_path, []).write("note", text="whole")
    with open(events_path(tmp_path, "r"), "a") as file:
        file.write('{"half')
    assert [event["text"] for event in read_events(tmp_path, "r")] == ["whole"]
    assert read_events(tmp_path, "unknown") == []
