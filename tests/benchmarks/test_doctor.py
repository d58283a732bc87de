"""Every case of doctor_cases.toml is a test: our doctor finds what is broken and is quiet about what is sound."""

from pathlib import Path

import pytest

from benchmarks import doctor_cases
from benchmarks.doctor import Case, cases, judged, look
from data_lake.findings import CODES
from data_lake.sources import SOURCES

CASES = cases()


def test_the_table_is_complete() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    pains = {case.pain for case in CASES}
    assert pains >= {f"D{number:02d}" for number in (*range(1, 14), *range(15, 20), 21, 22, 23)}
    assert sum(case.is_clean for case in CASES) >= 3
    for case in CASES:
        assert case.format in SOURCES
        assert case.made_by in vars(doctor_cases)
        assert {wanted["code"] for wanted in case.expect} | set(case.beside) <= CODES.keys()
        assert all(wanted["severity"] == CODES[wanted["code"]].severity for wanted in case.expect)
        is_asked = case.format == "lerobot" and not case.lake  # the others read nothing else
        assert case.is_clean or case.peers or not is_asked, f"{case.name}: nothing would name it"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_doctor_names_it(
    case: Case, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.doctor.peers_python", lambda: None)
    if case.made_by == "recorded":
        monkeypatch.setattr(doctor_cases, "RECORDED", request.getfixturevalue("shared_data"))
    seen = look(case, tmp_path)
    assert seen.missing == [] and seen.alarms == []


def test_a_doctor_that_says_nothing_or_too_much_is_judged() -> None:
    broken = next(case for case in CASES if case.name == "parquet missing")
    sound = next(case for case in CASES if case.name == "clean v3.0")
    item = {"code": "LAKE-009", "severity": "error", "episode": 1, "message": "missing", "fix": "copy it"}
    answer = {"episodes": {"ok": 2}, "findings": [item]}
    assert judged(broken, answer) == ([], [])
    assert judged(broken, {**answer, "findings": []}) == (["LAKE-009 error 1"], [])
    assert judged(broken, {**answer, "findings": [{**item, "episode": 0}]})[0] == ["LAKE-009 error 1"]
    assert judged(broken, {**answer, "findings": [{**item, "severity": "note"}]})[0] == ["LAKE-009 error 1"]
    assert judged(broken, {**answer, "episodes": {"ok": 1}})[0] == ["1 of 2 episodes usable"]
    warned = {"episodes": {"ok": 3}, "findings": [{"code": "LAKE-052", "severity": "warning"}]}
    noted = {"episodes": {"ok": 3}, "findings": [{"code": "LAKE-143", "severity": "note"}]}
    assert judged(sound, warned) == ([], ["LAKE-052"]) and judged(sound, noted) == ([], [])
