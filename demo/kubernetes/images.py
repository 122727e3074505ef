"""The bookstore's image: every program of it, under the names by which its manifests start them."""

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
"""The same program by another name: what is tried is that it is replaced, not what is new in it."""

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
    """Return it; its database has no command in its manifest."""
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
    """Return an image of the control plane and of the proxy: this project, Envoy, and what sets rules."""
    if not Path(envoy).exists():
        raise DemoError(f"there is no Envoy at {envoy}")
    files: Files = {
        **busybox("sh", "cat", "sleep"),
        **iptables(),
        "/usr/local/bin/meshwright": Link(f"{HOME}/bin/meshwright"),
    }
    below = (compiled_environment(), envoy_layer(Path(envoy)))
    return Image(name, files, ("/usr/local/bin/meshwright",), below=below)
