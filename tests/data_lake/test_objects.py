"""On an object store, too, things appear whole or not at all, and only one of many writers creates a name."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from upath import UPath

from data_lake import objects
from data_lake.files import (
    appeared,
    appearing,
    lake_path,
    link_or_copy,
    put_if_absent,
    read_bytes,
    remove,
    replace,
    sha256,
    tree,
)
from errors import UserError


def test_one_of_twenty_writers_wins(bucket: UPath) -> None:
    for name in ("a", "b", "c"):
        with ThreadPoolExecutor(20) as pool:
            won = list(pool.map(lambda i, name=name: put_if_absent(bucket / name, str(i).encode()), range(20)))
        assert won.count(True) == 1
        assert (bucket / name).read_bytes() == str(won.index(True)).encode()
    assert not put_if_absent(bucket / "a", b"late")


def test_a_put_that_met_another_one_is_repeated(bucket: UPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 answers 409 while a conflicting put goes on; that says nothing about who came first."""
    put, answers = bucket.fs.pipe_file, [OSError(16, "ConditionalRequestConflict")] * 3

    def pipe_file(path: str, payload: bytes, mode: str) -> None:
        if answers:
            raise answers.pop()
        put(path, payload, mode=mode)

    monkeypatch.setattr(bucket.fs, "pipe_file", pipe_file)
    assert put_if_absent(bucket / "a", b"one") and not answers
    assert not put_if_absent(bucket / "a", b"two")


def test_what_others_write_is_seen_at_once(bucket: UPath) -> None:
    """Another client, which shares no memory of listings with this one."""
    import boto3

    assert not (bucket / "x/a").exists() and list((bucket / "x").glob("*")) == []
    name, _, key = (bucket / "x/a").path.partition("/")
    boto3.client("s3").put_object(Bucket=name, Key=key, Body=b"theirs")
    assert [path.name for path in (bucket / "x").glob("*")] == ["a"] and (bucket / "x/a").read_bytes() == b"theirs"
    replace(bucket / "x/a", b"ours")
    assert boto3.client("s3").get_object(Bucket=name, Key=key)["Body"].read() == b"ours"


def test_a_reader_sees_the_old_or_the_new(bucket: UPath) -> None:
    """A heartbeat is replaced while others read it."""
    path, ended = bucket / "beat", threading.Event()
    replace(path, b"0" * 100)

    def beat() -> None:
        for number in count(1):
            replace(path, str(number % 10).encode() * 100)
            if ended.is_set():
                return

    with ThreadPoolExecutor(1) as pool:
        beating = pool.submit(beat)
        seen = [read_bytes(path) for _ in range(50)]
        ended.set()
        beating.result()
    assert len(set(seen)) > 1 and all(len(set(each)) == 1 and len(each) == 100 for each in seen)


def test_the_tree_and_what_is_removed_of_it(bucket: UPath) -> None:
    for name in ("b/x", "a/y", "c", "ab"):
        replace(bucket / name, name.encode())
    assert [path.relative_to(bucket).as_posix() for path in tree(bucket)] == ["a/y", "ab", "b/x", "c"]
    assert objects.below(bucket / "a") == {"y": 3}, "a prefix ends at a slash"
    assert sha256(bucket / "c", durable=True) == hashlib.sha256(b"c").hexdigest()
    for name in ("b", "c", "never"):
        remove(bucket / name)
    assert list(objects.below(bucket)) == ["a/y", "ab"]


def test_a_folder_appears_whole(bucket: UPath) -> None:
    target = bucket / "folder"
    with appearing(target) as place:
        replace(place / "a/b", b"b")
        link_or_copy(place / "a/b", place / "copied")
        assert appeared(target) is None
    found = appeared(target)
    assert found is not None and objects.below(found) == {"a/b": 1, "copied": 1}


def test_a_folder_that_fails_leaves_nothing(bucket: UPath) -> None:
    with pytest.raises(ZeroDivisionError), appearing(bucket / "folder") as place:
        replace(place / "a", b"a")
        raise ZeroDivisionError
    assert objects.below(bucket) == {}


def test_of_two_that_make_a_folder_the_first_stays(bucket: UPath) -> None:
    target = bucket / "folder"
    with pytest.raises(FileExistsError), appearing(target) as late:
        replace(late / "a", b"late")
        with appearing(target) as early:
            replace(early / "a", b"early")
    found = appeared(target)
    assert found is not None and (found / "a").read_bytes() == b"early"
    assert list(objects.below(target)) == sorted([f"{found.name}/a", objects.NOTE])


def test_a_folder_goes_up_under_its_names(bucket: UPath, tmp_path: Path) -> None:
    replace(tmp_path / "made/a/b", b"12")
    replace(tmp_path / "made/c", b"3")
    checked: list[int] = []
    objects.upload(tmp_path / "made", bucket / "slot", lambda: checked.append(1))
    assert objects.below(bucket / "slot") == {"a/b": 2, "c": 1} and checked == [1]


def test_places_by_their_names(tmp_path: Path, object_store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lake_path("x") == tmp_path / "x"
    assert str(lake_path("s3://b/lake/") / "datasets") == "s3://b/lake/datasets"
    for bad in ("gs://bucket/lake", "s3://", "http://x/y"):
        with pytest.raises(UserError, match="LAKE-170"):
            lake_path(bad)
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(UserError, match="(?s)LAKE-171.*AWS_ALLOW_HTTP=true"):
        lake_path("s3://b/lake")


def test_a_bucket_that_is_not_there_is_named(bucket: UPath) -> None:
    objects.require_bucket(bucket)
    with pytest.raises(UserError, match="(?s)LAKE-172.*absent-bucket"):
        objects.require_bucket(objects.object_path("s3://absent-bucket/lake"))
