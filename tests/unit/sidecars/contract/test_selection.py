"""Tests of the selection of driver, images and port: a table of precedence."""

import pytest

from meshwright.mesh.config import SidecarDriverSettings, SidecarSettings
from meshwright.sidecars.contract.errors import DuplicateDriverError, UnknownDriverError
from meshwright.sidecars.contract.selection import Selection, select

PORTS = {"envoy": 15128, "pipy": 6060}
ENTRY = SidecarDriverSettings("envoy", "entry", "entry-w", "entry-i", 16000, disabled_mtls=True)
PIPY = SidecarDriverSettings("pipy", "pipy-entry")
ENVIRONMENT = {
    "MESHWRIGHT_SIDECAR_CLASS": "pipy",
    "MESHWRIGHT_SIDECAR_IMAGE": "env",
    "MESHWRIGHT_SIDECAR_WINDOWS_IMAGE": "env-w",
    "MESHWRIGHT_INIT_IMAGE": "env-i",
}


def mesh(
    *drivers: SidecarDriverSettings, name: str = "envoy", linux: str = "", windows: str = "", init: str = ""
) -> SidecarSettings:
    """Make the mesh-wide settings."""
    return SidecarSettings(name, drivers, linux_image=linux, windows_image=windows, init_image=init)


@pytest.mark.parametrize(
    ("config", "environment", "named", "expected"),
    [
        (mesh(), {}, {}, Selection("envoy", "", "", "", 15128)),
        (mesh(), ENVIRONMENT, {}, Selection("envoy", "env", "env-w", "env-i", 15128)),
        (
            mesh(ENTRY),
            ENVIRONMENT,
            {},
            Selection("envoy", "entry", "entry-w", "entry-i", 16000),
        ),
        (
            mesh(ENTRY, linux="mesh", windows="mesh-w", init="mesh-i"),
            ENVIRONMENT,
            {},
            Selection("envoy", "mesh", "mesh-w", "mesh-i", 16000),
        ),
        (
            mesh(ENTRY, windows="mesh-w"),
            {},
            {},
            Selection("envoy", "entry", "mesh-w", "entry-i", 16000),
        ),
        (
            mesh(name=""),
            ENVIRONMENT,
            {},
            Selection("pipy", "env", "env-w", "env-i", 6060),
        ),
        (mesh(name=""), {}, {}, Selection("envoy", "", "", "", 15128)),
        (
            mesh(ENTRY, PIPY, linux="mesh"),
            {},
            {"named": "pipy"},
            Selection("pipy", "pipy-entry", "", "", 6060),
        ),
        (
            mesh(ENTRY, PIPY, linux="mesh"),
            {},
            {"named": "envoy"},
            Selection("envoy", "mesh", "entry-w", "entry-i", 16000),
        ),
    ],
)
def test_most_specific_setting_selects_driver_and_images(
    config: SidecarSettings, environment: dict[str, str], named: dict[str, str], expected: Selection
) -> None:
    """A driver is named by workload, mesh or environment.

    Images come from the mesh, the driver's entry or the environment.
    """
    assert select(config, environment, PORTS, **named) == expected


def test_unknown_and_duplicate_drivers_are_errors() -> None:
    """The error of an unknown driver lists the known ones."""
    with pytest.raises(UnknownDriverError, match="'x' is unknown; known: envoy, pipy"):
        select(mesh(), {}, PORTS, named="x")
    with pytest.raises(DuplicateDriverError, match="name 'envoy' 2 times"):
        select(mesh(ENTRY, ENTRY), {}, PORTS)
