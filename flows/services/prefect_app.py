"""Prefect's own web application behind one check: requests that a foreign page or name sent are refused.

Prefect itself answers whoever asks. A page in the same browser, or a name that was rebound to 127.0.0.1,
could otherwise start flow runs (DNS rebinding, CSRF).
"""

import os
from typing import Any

NAMES = ("127.0.0.1", "localhost")


class LocalOnly:
    """ASGI: passes requests whose Host, and Origin if there is one, is this server; answers 403 to others."""

    def __init__(self, app: Any, hosts: frozenset[bytes]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket") or self._is_local(dict(scope["headers"])):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": b"foreign Host or Origin"})

    def _is_local(self, headers: dict[bytes, bytes]) -> bool:
        origin = headers.get(b"origin")
        own = origin is None or origin.removeprefix(b"http://") in self.hosts
        return headers.get(b"host") in self.hosts and own


def create_app() -> LocalOnly:
    """For `uvicorn --factory`; the port is the server's own setting."""
    from prefect.server.api.server import create_app as prefect_application

    port = os.environ["PREFECT_SERVER_API_PORT"]
    return LocalOnly(prefect_application(), frozenset(f"{name}:{port}".encode() for name in NAMES))
