"""Methods that a sidecar answers by itself."""

import pytest

from catalog.oracle.paths import TurnedDown
from catalog.oracle.requests import Request, passed
from mesh.names import Namespace, Port, ServiceName
from mesh.service import EscapedSlashes, ServiceKey

SHOP = ServiceKey(Namespace("shop"), ServiceName("shop"))


@pytest.mark.parametrize(
    ("method", "http2", "status"),
    [
        ("GET", False, 0),
        ("PROPFIND", False, 0),
        ("PURGE", False, 0),
        ("get", False, 400),
        ("MKTICKET", False, 400),
        ("M-SEARCH", False, 400),
        ("MKTICKET", True, 0),
        ("CONNECT", False, 404),
        ("CONNECT", True, 404),
    ],
)
def test_methods_that_are_turned_down(method: str, http2: bool, status: int) -> None:
    """Those that Envoy does not know in HTTP/1, and tunnels; an own method passes in HTTP/2."""
    found = passed(Request(None, SHOP, Port(80), method, http2=http2), EscapedSlashes.REJECT)
    assert (found.status if isinstance(found, TurnedDown) else 0) == status
