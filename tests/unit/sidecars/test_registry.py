"""Drivers by name, and each way in which that can fail."""

from importlib.metadata import EntryPoint

import pytest

from meshwright.controller.drivers import MeshDrivers
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import (
    DuplicateDriverError,
    NoDriverError,
    NotADriverError,
    UnknownDriverError,
)
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.registry import GROUP, DriverRegistry
from tests.unit.sidecars.paper import Paper


def test_drivers_are_known_by_name() -> None:
    """In the order of their names, whichever was registered first."""
    registry = DriverRegistry()
    paper, envoy = Paper(), EnvoyDriver()
    registry.register(paper)
    registry.register(envoy)
    assert list(registry.drivers.items()) == [("envoy", envoy), ("paper", paper)]


def test_nothing_registered() -> None:
    """Where nothing is installed, whoever asks for drivers is told so."""
    with pytest.raises(NoDriverError, match="no sidecar driver is registered"):
        _ = DriverRegistry.discover([]).drivers


def test_one_name_twice() -> None:
    """A second driver of one name is refused and the first stays; two packages that ship one are found."""
    registry = DriverRegistry()
    first = EnvoyDriver()
    registry.register(first)
    with pytest.raises(DuplicateDriverError, match="'envoy' is registered twice"):
        registry.register(EnvoyDriver())
    assert registry.drivers["envoy"] is first
    value = "meshwright.sidecars.envoy.driver:EnvoyDriver"
    with pytest.raises(DuplicateDriverError, match="'envoy' is registered twice"):
        DriverRegistry.discover([EntryPoint(name, value, GROUP) for name in ("envoy", "mine")])


def test_none_can_be_called_before_one_is_chosen() -> None:
    """The mesh's drivers are made with the choice of one, and not at all without."""
    registry = DriverRegistry()
    registry.register(Paper())
    with pytest.raises(UnknownDriverError, match="'envoy' is unknown; known: paper"):
        MeshDrivers(registry.drivers, {})
    registry.register(EnvoyDriver())
    assert MeshDrivers(registry.drivers, {}).drivers == registry.drivers


def test_installed_drivers_are_found() -> None:
    """The package's own entry points lead to drivers that keep the contract."""
    found = DriverRegistry.discover().drivers
    assert isinstance(found["envoy"], EnvoyDriver)
    assert all(isinstance(each, SidecarDriver) for each in found.values())


@pytest.mark.parametrize(
    "value", ["sidecars.missing:Driver", "sidecars.envoy.names:cluster", "builtins:dict"]
)
def test_an_entry_point_that_is_no_driver(value: str) -> None:
    """What cannot be loaded, or is no driver, is named with where it was said."""
    with pytest.raises(NotADriverError, match=f"odd = {value}"):
        DriverRegistry.discover([EntryPoint("odd", value, GROUP)])
