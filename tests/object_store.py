"""A local S3 server (moto's) on a loopback port of its own, and the environment that leads there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The environment variables of a server that runs until the block ends."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nothing",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set for the session, and for the processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield
