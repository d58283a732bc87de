"""A forwarder before an object store: every answer comes later by a fixed time, and requests and bytes are counted.

It stands for a store in another place: a reader that asks for much at once waits once, one that asks again and again
waits each time. It forwards bytes as they are, so that signatures of the requests stay valid.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

BLOCK = 1 << 16
HEAD = 1 << 16  # bytes that the head of a request may have


@dataclass(slots=True)
class Traffic:
    """What passed so far: requests by method, bytes in bodies and heads towards the store and back."""

    requests: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    received: int = 0

    @property
    def num_requests(self) -> int:
        return sum(self.requests.values())


@contextmanager
def slow_store(endpoint: str, *, latency_s: float) -> Iterator[tuple[str, Traffic]]:
    """The address of a forwarder to `endpoint` (`http://host:port`) on a loopback port, and what passes it.

    latency_s: added to each request before it reaches the store; requests of several connections wait side by side.
    """
    traffic, ready = Traffic(), threading.Event()
    forwarder = _Forwarder(endpoint, latency_s, traffic)
    thread = threading.Thread(target=lambda: asyncio.run(forwarder.serve(ready)), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{forwarder.port}", traffic
    finally:
        forwarder.end()
        thread.join()


class _Forwarder:
    """Runs in a thread of its own; a connection from a client has one to the store."""

    def __init__(self, endpoint: str, latency_s: float, traffic: Traffic) -> None:
        address = urlsplit(endpoint)
        self._host, self._port = address.hostname or "127.0.0.1", address.port or 80
        self._latency_s = latency_s
        self._traffic = traffic
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0

    async def serve(self, ready: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=HEAD)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await self._ended.wait()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _connected(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        store, requests = await asyncio.open_connection(self._host, self._port)
        back = asyncio.create_task(self._back(store, answers))
        try:
            while await self._forward(client, requests):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, as clients do, or all of this ends
        finally:
            back.cancel()
            requests.close()
            answers.close()
            self._open.discard(task)

    async def _forward(self, client: asyncio.StreamReader, store: asyncio.StreamWriter) -> bool:
        """One request, late. False when the client has no more."""
        try:
            head = await client.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        await asyncio.sleep(self._latency_s)
        method = head.partition(b" ")[0].decode()
        self._traffic.requests[method] = self._traffic.requests.get(method, 0) + 1
        self._send(store, head)
        fields = dict(_field(line) for line in head.split(b"\r\n")[1:-2])
        if fields.get("transfer-encoding", "").lower() == "chunked":
            await self._chunks(client, store)
        else:
            await self._body(client, store, int(fields.get("content-length", "0")))
        return True

    async def _body(self, client: asyncio.StreamReader, store: asyncio.StreamWriter, left: int) -> None:
        while left:
            block = await client.readexactly(min(left, BLOCK))
            left -= len(block)
            self._send(store, block)
            await store.drain()

    async def _chunks(self, client: asyncio.StreamReader, store: asyncio.StreamWriter) -> None:
        """Chunks as RFC 9112 §7.1 has them: a line with the size in hexadecimal, the bytes, an empty line."""
        while True:
            line = await client.readuntil(b"\r\n")
            self._send(store, line)
            size = int(line.partition(b";")[0], 16)
            await self._body(client, store, size + 2)
            if not size:
                return

    def _send(self, store: asyncio.StreamWriter, content: bytes) -> None:
        self._traffic.sent += len(content)
        store.write(content)

    async def _back(self, store: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        while block := await store.read(BLOCK):
            self._traffic.received += len(block)
            answers.write(block)
            await answers.drain()
        answers.close()


def _field(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("latin-1").partition(":")
    return name.strip().lower(), value.strip()
