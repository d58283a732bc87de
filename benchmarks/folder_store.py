"""A folder as an S3 server that can only be read and answers late, in a process of its own: what a program made for
testing whole applications would take of a small machine's time must not be counted against the reader.

It answers GET (whole, or one range), HEAD and ListObjectsV2, and looks at no signature. Each folder in it is a bucket.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from benchmarks.slow_store import Traffic


@contextmanager
def folder_store(folder: Path, *, latency_s: float) -> Iterator[tuple[dict[str, str], Callable[[], Traffic]]]:
    """The environment that leads to the folder's buckets, and what has passed so far.

    latency_s: between each request and its answer; requests of several connections wait side by side."""
    spawned = multiprocessing.get_context("spawn")
    here, there = spawned.Pipe()
    process = spawned.Process(target=_serve, args=(folder, latency_s, there), daemon=True)
    process.start()
    there.close()
    address = here.recv()

    def passed() -> Traffic:
        here.send("passed")
        return here.recv()

    try:
        yield {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", **_NOBODY}, passed
    finally:
        here.close()
        process.join()


_NOBODY = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def _serve(folder: Path, latency_s: float, asked: Connection) -> None:
    """Until the other end of `asked` is closed."""
    asyncio.run(_serving(_Folder(folder), latency_s, asked))


async def _serving(folder: "_Folder", latency_s: float, asked: Connection) -> None:
    loop, traffic = asyncio.get_running_loop(), Traffic()
    server = await loop.create_server(lambda: _Caller(folder, latency_s, traffic), "127.0.0.1", 0)
    asked.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        while await asyncio.to_thread(asked.recv):
            asked.send(traffic)
    except EOFError:
        server.close()


class _Caller(asyncio.Protocol):
    """One connection. A request has no body, and the next one comes when it was answered."""

    def __init__(self, folder: "_Folder", latency_s: float, traffic: Traffic) -> None:
        self._folder, self._latency_s, self._traffic = folder, latency_s, traffic
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._traffic.sent += len(data)
        *heads, self._asked = (self._asked + data).split(b"\r\n\r\n")
        for head in heads:
            asyncio.get_running_loop().call_later(self._latency_s, self._answer, head.decode("latin-1"))

    def _answer(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        answer = self._folder.answer(method, target, fields.get("range"))
        self._traffic.requests[method] = self._traffic.requests.get(method, 0) + 1
        self._traffic.received += len(answer)
        self._transport.write(answer)


class _Folder:
    """Answers of one store; what a file holds is read anew each time."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def answer(self, method: str, target: str, span: str | None) -> bytes:
        asked = urlsplit(target)
        query = parse_qs(asked.query)
        name = unquote(asked.path).strip("/")
        if "list-type" in query:
            prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
            return _answered("200 OK", self._listed(name, prefix, delimiter))
        path = self._root / name
        if not path.is_file():
            return _answered("404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>" if method == "GET" else b"")
        stat = path.stat()
        told = {"ETag": f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"', "Last-Modified": _date(stat.st_mtime)}
        if method == "HEAD":
            return _answered("200 OK", b"", told | {"Content-Length": str(stat.st_size)})
        first, last = _span(span, stat.st_size)
        with path.open("rb") as file:
            content = os.pread(file.fileno(), last - first + 1, first)
        if span is None:
            return _answered("200 OK", content, told)
        return _answered(
            "206 Partial Content", content, told | {"Content-Range": f"bytes {first}-{last}/{stat.st_size}"}
        )

    def _listed(self, bucket: str, prefix: str, delimiter: str) -> bytes:
        """ListObjectsV2 in one piece. A listing asks for whole folders, as Lance and s3fs do."""
        root = self._root / bucket
        below = root / prefix.rpartition("/")[0]
        paths = sorted(path for path in below.rglob("*") if path.is_file())
        shown, folders = list[str](), dict[str, None]()
        for path in paths:
            name = path.relative_to(root).as_posix()
            if not name.startswith(prefix):
                continue
            rest, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            if cut:
                folders[prefix + rest + cut] = None
                continue
            stat = path.stat()
            at = datetime.fromtimestamp(stat.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            shown.append(
                f"<Contents><Key>{escape(name)}</Key><LastModified>{at}</LastModified><Size>{stat.st_size}</Size>"
                f"<ETag>&quot;{stat.st_mtime_ns:x}-{stat.st_size:x}&quot;</ETag></Contents>"
            )
        shown += [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders]
        told = f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
        listed = f"<ListBucketResult>{told}<IsTruncated>false</IsTruncated>{''.join(shown)}</ListBucketResult>"
        return listed.encode()


def _span(asked: str | None, size: int) -> tuple[int, int]:
    """First and last byte of `bytes=a-b`, `bytes=a-` or `bytes=-n` (RFC 9110 §14.1.2)."""
    if asked is None:
        return 0, size - 1
    first, _, last = asked.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def _date(seconds: float) -> str:
    return format_datetime(datetime.fromtimestamp(seconds, UTC), usegmt=True)


def _answered(status: str, content: bytes, fields: dict[str, str] | None = None) -> bytes:
    told = {"Content-Length": str(len(content)), **(fields or {})}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in told.items()), "", ""]
    return "\r\n".join(lines).encode() + content
