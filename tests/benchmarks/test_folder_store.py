"""A folder served as objects: what is in its files, in whole and in part, late by what was asked for, and counted."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import lance
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError

from benchmarks.folder_store import folder_store
from benchmarks.slow_store import Traffic
from data_lake import objects
from tests.object_store import environment

CONTENT = os.urandom(300_000)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Callable[[], Traffic]]]:
    folder = tmp_path_factory.mktemp("served")
    with folder_store(folder, latency_s=0.02) as (variables, passed), environment(variables):
        yield folder, passed


def client() -> Any:
    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])


def test_objects_are_the_files(served: tuple[Path, Callable[[], Traffic]]) -> None:
    folder, passed = served
    (folder / "bucket/a b").mkdir(parents=True)
    (folder / "bucket/a b/c").write_bytes(CONTENT)
    before, began, s3 = passed(), time.perf_counter(), client()
    where = {"Bucket": "bucket", "Key": "a b/c"}
    assert s3.get_object(**where)["Body"].read() == CONTENT
    assert s3.head_object(**where)["ContentLength"] == len(CONTENT)
    for asked, part in (("10-19", CONTENT[10:20]), ("299990-", CONTENT[-10:]), ("-7", CONTENT[-7:])):
        assert s3.get_object(**where, Range=f"bytes={asked}")["Body"].read() == part
    assert time.perf_counter() - began >= 5 * 0.02
    after = passed()
    assert after.num_requests - before.num_requests == 5 and after.received - before.received > len(CONTENT)
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="bucket", Key="absent")


def test_it_is_listed_and_lance_reads_it(served: tuple[Path, Callable[[], Traffic]]) -> None:
    folder, _ = served
    table = pa.table({"x": list(range(1000))})
    lance.write_dataset(table, str(folder / "tables/t.lance"))
    (folder / "tables/t").write_bytes(b"12")
    root = objects.object_path("s3://tables")
    assert sorted(path.name for path in root.iterdir()) == ["t", "t.lance"]
    sizes = objects.below(root)
    assert sizes == {path.relative_to(folder / "tables").as_posix(): path.stat().st_size for path in files(folder)}
    assert lance.dataset("s3://tables/t.lance").to_table() == table
    assert not (root / "absent").exists()


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "tables").rglob("*") if path.is_file()]
