"""Images of the demo: the programs of the bookstore under the names in their manifests, and Meshwright."""

from pathlib import Path
from typing import Final

from demo.supervisor import DemoError
from tools.real_parts.images.archives import Image, busybox, iptables, tree
from tools.real_parts.images.environments import HOME, compiled_environment
from tools.real_parts.images.layers import Files, Link, Text
from tools.real_parts.images.own_images import envoy_layer

BOOKSTORE: Final = "demo.local/bookstore:v1"
MESHWRIGHT: Final = "demo.local/meshwright:v1"
UPGRADED: Final = "demo.local/meshwright:v2"
"""The same program under another name, because the upgrade scene tests only the replacement."""

_APPS: Final = Path(__file__).parents[1] / "apps"
_AT: Final = "/opt/bookstore"
_PROGRAMS: Final = (
    "bookbuyer",
    "bookthief",
    "bookstore",
    "bookwarehouse",
    "mysql",
    "purchase",
    "relay",
    "call",
)


def bookstore() -> Image:
    """Return the image of the bookstore.

    Its default command is the database, whose manifest has no command.
    """
    scripts = {f"/{name}": Text(_script(name), executable=True) for name in _PROGRAMS}
    package = {f"{_AT}/demo/__init__.py": Text(""), **tree(_APPS, f"{_AT}/demo/apps")}
    files = {**busybox("sh"), **package, **scripts}
    return Image(BOOKSTORE, files, ("/mysql",), below=(compiled_environment(),))


def _script(name: str) -> str:
    return (
        f"#!{HOME}/bin/python\n"
        f"import sys\nsys.path.insert(0, {_AT!r})\nsys.dont_write_bytecode = True\n"
        f"from demo.apps.osm import main\nsys.exit(main([{name!r}, *sys.argv[1:]]))\n"
    )


def meshwright(name: str, envoy: str) -> Image:
    """Return a container image for control plane and sidecars: this project, Envoy, and iptables."""
    if not Path(envoy).exists():
        raise DemoError(f"{envoy} does not exist: run `make envoy`, or set MESHWRIGHT_ENVOY")
    files: Files = {
        **busybox("sh", "cat", "sleep"),
        **iptables(),
        "/usr/local/bin/meshwright": Link(f"{HOME}/bin/meshwright"),
    }
    # The environment is a layer of both images, so that a node stores it once.
    below = (compiled_environment(), envoy_layer(Path(envoy)))
    return Image(name, files, ("/usr/local/bin/meshwright",), below=below)
