"""One `up` for all tests that need running services: starting a Prefect server is what costs."""

from collections.abc import Iterator

import pytest

from flows.api import PrefectApi
from flows.places import Places
from flows.services import ledger
from flows.services.up import down, up


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Running services of a home of their own."""
    root = tmp_path_factory.mktemp("up")
    where = Places(lake=root / "lake", home=root / "home")
    try:
        up(where, lambda _name, _text: None)
        yield where
    finally:
        down(where.home, lambda _name, _text: None)


@pytest.fixture(scope="session")
def api(services: Places) -> PrefectApi:
    url = ledger.server_url(services.home)
    assert url is not None
    return PrefectApi(url=url)
