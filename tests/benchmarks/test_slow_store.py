"""The slow store is late by what was asked for, counts what passes, and changes nothing of it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
import lance
import pyarrow as pa
import pytest
from upath import UPath

from benchmarks.slow_store import slow_store


def test_every_request_is_late_and_counted(bucket: UPath, object_store: dict[str, str]) -> None:
    name, content = bucket.path.partition("/")[0], os.urandom(300_000)
    with slow_store(object_store["AWS_ENDPOINT_URL"], latency_s=0.05) as (address, traffic):
        client = boto3.client("s3", endpoint_url=address)
        client.put_object(Bucket=name, Key="a", Body=content)
        assert traffic.requests == {"PUT": 1} and traffic.sent > len(content)
        received, began = traffic.received, time.perf_counter()
        for _ in range(3):
            assert client.get_object(Bucket=name, Key="a")["Body"].read() == content
        assert time.perf_counter() - began >= 3 * 0.05
        assert traffic.requests == {"PUT": 1, "GET": 3} and traffic.received - received > 3 * len(content)
        part = client.get_object(Bucket=name, Key="a", Range="bytes=10-19")["Body"].read()
        assert part == content[10:20] and traffic.num_requests == 5
    assert (bucket.parent.parent / "a").read_bytes() == content


def test_connections_wait_side_by_side(bucket: UPath, object_store: dict[str, str]) -> None:
    """As over a long line: eight requests at once are late once."""
    name = bucket.path.partition("/")[0]
    (bucket.parent.parent / "a").write_bytes(b"x")
    with slow_store(object_store["AWS_ENDPOINT_URL"], latency_s=0.5) as (address, traffic):
        clients = [boto3.client("s3", endpoint_url=address) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            began = time.perf_counter()
            list(pool.map(lambda client: client.head_object(Bucket=name, Key="a"), clients))
        assert 0.5 <= time.perf_counter() - began < 8 * 0.5 and traffic.requests == {"HEAD": 8}


def test_lance_reads_and_writes_through_it(
    bucket: UPath, object_store: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"x": list(range(1000))})
    with slow_store(object_store["AWS_ENDPOINT_URL"], latency_s=0.001) as (address, traffic):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        lance.write_dataset(table, str(bucket / "t.lance"))
        assert lance.dataset(str(bucket / "t.lance")).to_table() == table
        assert traffic.requests["PUT"] >= 2 and traffic.requests["GET"] >= 1
