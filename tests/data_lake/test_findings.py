"""The table of codes, and folding many findings of one kind into one."""

import re

from data_lake.findings import CODES, finding, fold


def test_codes_are_complete() -> None:
    for code, known in CODES.items():
        assert re.fullmatch(r"LAKE-\d{3}", code)
        assert known.severity in ("error", "warning", "note")
        assert known.what and known.done and known.fix
    assert len({known.what for known in CODES.values()}) == len(CODES)


def test_json_has_the_keys_that_other_tools_read() -> None:
    item = finding("LAKE-011", "9 frames, 10 rows", episode=3, camera="front", row=4, file="a.mp4")
    assert item.as_json() == {
        "code": "LAKE-011",
        "severity": "error",
        "episode": 3,
        "camera": "front",
        "row": 4,
        "file": "a.mp4",
        "message": "the camera does not have one frame per row: 9 frames, 10 rows",
        "fix": CODES["LAKE-011"].fix,
    }


def test_many_of_a_kind_become_one_that_names_the_first() -> None:
    many = [finding("LAKE-012", f"{n} declared", episode=n, file=f"{n}.parquet") for n in range(300)]
    folded = fold([*many, finding("LAKE-012", "", episode=0)])
    assert len(folded) == 1
    assert folded[0].episode == 0 and folded[0].file == "0.parquet"
    assert folded[0].message.endswith("(and in 299 more episodes)")
    assert folded[0].as_json()["episodes"] == list(range(300)), "people are told the first, machines all"
    assert fold(many[:2])[0].message.endswith("(and in 1 more episode)") and fold(many[:1]) == many[:1]


def test_cameras_and_statements_about_the_source_stay_apart() -> None:
    items = [finding("LAKE-010", episode=n, camera=camera) for n in range(2) for camera in ("a", "b")]
    items += [finding("LAKE-044", "data_path"), finding("LAKE-044", "video_path")]
    folded = fold(items)
    assert [(item.code, item.camera) for item in folded] == [
        ("LAKE-010", "a"),
        ("LAKE-010", "b"),
        ("LAKE-044", None),
        ("LAKE-044", None),
    ]


def test_errors_come_first() -> None:
    assert [item.code for item in fold([finding("LAKE-041"), finding("LAKE-011", episode=1)])] == [
        "LAKE-011",
        "LAKE-041",
    ]


def test_what_stops_more_comes_before_what_stops_less() -> None:
    few = [finding("LAKE-007", episode=n) for n in range(2)]
    most = [finding("LAKE-023", episode=n) for n in range(5)]
    all_of_them = finding("LAKE-116"), finding("LAKE-004")
    assert [item.code for item in fold([*few, *most, *all_of_them])] == ["LAKE-004", "LAKE-023", "LAKE-007", "LAKE-116"]
