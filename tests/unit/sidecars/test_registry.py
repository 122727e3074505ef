"""Drivers by name, and each way in which that can fail."""

from importlib.metadata import EntryPoint

import pytest

from sidecars.driver import SidecarDriver
from sidecars.envoy.driver import EnvoyDriver
from sidecars.errors import (
    DuplicateDriverError,
    NoDriverError,
    NotADriverError,
    NotChosenError,
    UnknownDriverError,
)
from sidecars.registry import GROUP, DriverRegistry
from tests.unit.sidecars.paper import Paper


def test_the_chosen_driver_is_given() -> None:
    """Of several drivers the one chosen by name is given, and another choice changes it."""
    registry = DriverRegistry()
    paper, envoy = Paper(), EnvoyDriver()
    registry.register(paper)
    registry.register(envoy)
    assert registry.names == ("envoy", "paper")
    assert registry.choose("envoy").name == registry.chosen.name == envoy.name
    assert registry.choose("paper").name == registry.chosen.name == paper.name


def test_nothing_registered() -> None:
    """Choosing when nothing is registered says so."""
    with pytest.raises(NoDriverError, match="no sidecar driver is registered"):
        DriverRegistry().choose("envoy")


def test_one_name_twice() -> None:
    """A second driver of one name is refused and the first stays."""
    registry = DriverRegistry()
    registry.register(EnvoyDriver())
    with pytest.raises(DuplicateDriverError, match="'envoy' is registered twice"):
        registry.register(EnvoyDriver())
    assert registry.names == ("envoy",)


def test_an_unknown_name() -> None:
    """Choosing an unknown driver names the known ones, and leaves the choice as it was."""
    registry = DriverRegistry()
    registry.register(EnvoyDriver())
    registry.register(Paper())
    registry.choose("paper")
    with pytest.raises(UnknownDriverError, match="'pipy' is unknown; known: envoy, paper"):
        registry.choose("pipy")
    assert registry.chosen.name == "paper"


def test_asked_before_chosen() -> None:
    """Asking for the driver before one is chosen is an error of its own."""
    registry = DriverRegistry()
    registry.register(EnvoyDriver())
    with pytest.raises(NotChosenError):
        _ = registry.chosen


def test_installed_drivers_are_found() -> None:
    """The package's own entry point leads to the Envoy driver, which keeps the contract."""
    registry = DriverRegistry.discover()
    assert isinstance(registry.choose("envoy"), EnvoyDriver)
    assert isinstance(registry.chosen, SidecarDriver)


@pytest.mark.parametrize(
    "value", ["sidecars.missing:Driver", "sidecars.envoy.names:cluster", "builtins:dict"]
)
def test_an_entry_point_that_is_no_driver(value: str) -> None:
    """What cannot be loaded, or is no driver, is named with where it was said."""
    with pytest.raises(NotADriverError, match=f"odd = {value}"):
        DriverRegistry.discover([EntryPoint("odd", value, GROUP)])
