"""A flow called anywhere finds its server; what it was told of places is kept with the run."""

import logging
from pathlib import Path

import pytest
from prefect.logging.handlers import PrefectConsoleHandler
from prefect.settings import get_current_settings

from flows.api import PrefectApi
from flows.places import Places
from flows.server import prefect_settings, present_run
from tests.flows.toy_flows import toy


def test_settings_of_a_home_without_services(tmp_path: Path) -> None:
    """A server of its own, of this home, with time enough to make its database."""
    with prefect_settings(Places(lake=tmp_path / "lake", home=tmp_path)):
        found = get_current_settings()
        assert found.home == tmp_path / "prefect"
        assert found.api.url is None
        assert str(tmp_path) in str(found.server.database.connection_url.get_secret_value())
        assert found.server.ephemeral.startup_timeout_seconds >= 60
        assert not found.server.analytics_enabled
    assert get_current_settings().home != tmp_path / "prefect"


def test_settings_where_services_run(services: Places, api: PrefectApi) -> None:
    with prefect_settings(services):
        assert get_current_settings().api.url == api.url


def test_a_server_that_was_named_is_left_alone(tmp_path: Path) -> None:
    from prefect.settings import temporary_settings

    with (
        temporary_settings({"api.url": "http://elsewhere/api"}),  # type: ignore[dict-item]
        prefect_settings(Places(lake=tmp_path, home=tmp_path)),
    ):
        assert get_current_settings().api.url == "http://elsewhere/api"


def test_the_terminal_is_quiet_only_meanwhile(tmp_path: Path) -> None:
    console = PrefectConsoleHandler(level=logging.INFO)
    root = logging.getLogger()
    root.addHandler(console)
    try:
        with prefect_settings(Places(lake=tmp_path, home=tmp_path)):
            assert console.level == logging.CRITICAL
        assert console.level == logging.INFO
    finally:
        root.removeHandler(console)


def test_a_plain_call_uses_the_running_server(services: Places, api: PrefectApi, tmp_path: Path) -> None:
    (tmp_path / "mended").touch()
    assert toy(str(tmp_path), home=str(services.home)) == 1
    newest = max(api.flow_runs({}, flows=["toy"]), key=lambda run: run["created"])
    assert newest["parameters"]["folder"] == str(tmp_path)
    assert newest["parameters"]["home"] == str(services.home)
    assert Path(newest["parameters"]["lake"]).is_absolute()


def test_no_run_outside_of_a_flow() -> None:
    with pytest.raises(RuntimeError, match="no flow run"):
        present_run()
