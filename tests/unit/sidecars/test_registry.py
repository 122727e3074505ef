"""Tests of the driver registry: look-up by name, and each way in which it can fail."""

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
from tests.unit.sidecars.idle_driver import IdleDriver


def test_drivers_are_listed_by_name() -> None:
    """The order is that of the names, whichever driver was registered first."""
    registry = DriverRegistry()
    idle, envoy = IdleDriver(), EnvoyDriver()
    registry.register(idle)
    registry.register(envoy)
    assert list(registry.drivers.items()) == [("envoy", envoy), ("idle", idle)]


def test_registry_without_drivers_is_an_error() -> None:
    """Without an installed driver, a look-up fails with the cause."""
    with pytest.raises(NoDriverError, match="no sidecar driver is registered"):
        _ = DriverRegistry.discover([]).drivers


def test_second_driver_of_a_name_is_refused() -> None:
    """The first driver stays registered. Two packages with the same driver are an error at discovery."""
    registry = DriverRegistry()
    first = EnvoyDriver()
    registry.register(first)
    with pytest.raises(DuplicateDriverError, match="'envoy' is registered twice"):
        registry.register(EnvoyDriver())
    assert registry.drivers["envoy"] is first
    value = "meshwright.sidecars.envoy.driver:EnvoyDriver"
    with pytest.raises(DuplicateDriverError, match="'envoy' is registered twice"):
        DriverRegistry.discover([EntryPoint(name, value, GROUP) for name in ("envoy", "mine")])


def test_mesh_drivers_need_the_chosen_driver() -> None:
    """The drivers of a mesh cannot be made unless the chosen driver is registered."""
    registry = DriverRegistry()
    registry.register(IdleDriver())
    with pytest.raises(UnknownDriverError, match="'envoy' is unknown; known: idle"):
        MeshDrivers(registry.drivers, {})
    registry.register(EnvoyDriver())
    assert MeshDrivers(registry.drivers, {}).drivers == registry.drivers


def test_installed_drivers_are_discovered() -> None:
    """The package's own entry points lead to drivers that implement the contract."""
    sidecar_drivers = DriverRegistry.discover().drivers
    assert isinstance(sidecar_drivers["envoy"], EnvoyDriver)
    assert all(isinstance(sidecar_driver, SidecarDriver) for sidecar_driver in sidecar_drivers.values())


@pytest.mark.parametrize(
    "value", ["sidecars.missing:Driver", "sidecars.envoy.names:cluster", "builtins:dict"]
)
def test_entry_point_that_is_no_driver_is_refused(value: str) -> None:
    """The error has the name and value of an entry point that cannot be loaded or is no driver."""
    with pytest.raises(NotADriverError, match=f"odd = {value}"):
        DriverRegistry.discover([EntryPoint("odd", value, GROUP)])
