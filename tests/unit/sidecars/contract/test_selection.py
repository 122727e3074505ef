"""Which driver, which images, which port: the precedence as a table."""

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
def test_the_nearest_word_wins(
    config: SidecarSettings, environment: dict[str, str], named: dict[str, str], expected: Selection
) -> None:
    """The workload's word, the mesh's, the environment's; images mesh-wide, of the entry, the environment."""
    assert select(config, environment, PORTS, **named) == expected


def test_what_cannot_be_selected_is_said() -> None:
    """An unknown driver with those that are known; two entries for one."""
    with pytest.raises(UnknownDriverError, match="'x' is unknown; known: envoy, pipy"):
        select(mesh(), {}, PORTS, named="x")
    with pytest.raises(DuplicateDriverError, match="name 'envoy' 2 times"):
        select(mesh(ENTRY, ENTRY), {}, PORTS)
