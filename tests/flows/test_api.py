"""Asking a server: answers, refusals, and a busy database."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from flows import api as module
from flows.api import PrefectApi, Refused


class Answers(BaseHTTPRequestHandler):
    """Pops (status, body) of the server's list for every request."""

    def do_GET(self) -> None:
        status, body = self.server.answers.pop(0)  # type: ignore[attr-defined]
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class names it so)
        """Quiet."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    found = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def asked(server: HTTPServer, *answers: tuple[int, object]) -> PrefectApi:
    server.answers = list(answers)  # type: ignore[attr-defined]
    return PrefectApi(url=f"http://127.0.0.1:{server.server_port}/api", timeout_s=5)


def test_answer_and_refusal(server: HTTPServer) -> None:
    assert asked(server, (200, {"id": "r1"})).flow_run("r1") == {"id": "r1"}
    with pytest.raises(Refused) as refused:
        asked(server, (404, {"detail": "none"})).deployment("a/b")
    assert refused.value.status == 404


def test_a_busy_database_is_asked_again(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES_S", (0.0, 0.0))
    assert asked(server, (503, {}), (503, {}), (200, {"id": "r1"})).flow_run("r1") == {"id": "r1"}
    with pytest.raises(Refused):
        asked(server, (503, {}), (503, {}), (503, {})).flow_run("r1")


def test_health(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES_S", ())
    assert asked(server, (200, True)).is_healthy()
    assert not asked(server, (500, {})).is_healthy()
    assert not PrefectApi(url="http://127.0.0.1:9/api", timeout_s=1).is_healthy()
