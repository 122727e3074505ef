"""Tests of responses that sidecars give themselves, with and without the diagnosis header."""

import re

import pytest

from meshwright.sidecars.layout import DIAGNOSIS_HEADER, OWN_ANSWER_HEADER
from tests.e2e.policy.applications import HTTP
from tests.e2e.policy.calls import raw
from tests.e2e.policy.policies import ALL, EVERYTHING, target
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

V1 = (WORKLOADS["v1"].address, HTTP)
SEVERAL = "Connection: Upgrade\r\nUpgrade: websocket, websocket\r\n"


def told(answer: tuple[str, str]) -> tuple[int, str]:
    """Return a response's status and its header about the answering sidecar."""
    match = re.search(rf"^{OWN_ANSWER_HEADER}: (.*?)\r?$", answer[0], re.IGNORECASE | re.MULTILINE)
    return int(answer[0].split(" ")[1]), match[1] if match else ""


@pytest.mark.parametrize(
    ("line", "headers", "status", "said"),
    [
        ("GET / HTTP/1.1", "", 200, ""),
        ("CONNECT shop:80 HTTP/1.1", "", 404, "NR route_not_found"),
        ("GET / HTTP/1.1", SEVERAL, 403, "- upgrade_failed"),
        ("GET /a%2fb HTTP/1.1", "", 400, "- path_normalization_failed"),
    ],
    ids=["application", "tunnel", "upgrade", "path"],
)
async def test_own_response_of_a_sidecar_is_marked_for_a_diagnosis_only(
    mesh: PolicyMesh, line: str, headers: str, status: int, said: str
) -> None:
    """The header has the side, Envoy's flags and details.

    Requests without the diagnosis header get no such header.
    """
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    closing = "" if headers else "Connection: close\r\n"
    sides = [("caller", mesh.place("client", "v1", 80), None), ("called", V1, mesh.certificate("client"))]
    for side, place, tls in sides[:1] if line.startswith("CONNECT") else sides:
        sent = f"{line}\r\nHost: shop\r\n{closing}{headers}"
        asked = await raw(place, f"{sent}{DIAGNOSIS_HEADER}: true\r\n\r\n", tls)
        assert told(asked) == (status, f"{side} {said}" if said else "")
        assert told(await raw(place, f"{sent}\r\n", tls)) == (status, "")


async def test_application_cannot_forge_the_own_response_header(mesh: PolicyMesh) -> None:
    """A header of that name in an application's response is removed by its sidecar."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    sent = f"GET /forged HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n{DIAGNOSIS_HEADER}: true\r\n\r\n"
    assert told(await raw(mesh.place("client", "v1", 80), sent)) == (200, "")


async def test_denied_response_has_its_reason_instead_of_the_own_response_header(mesh: PolicyMesh) -> None:
    """Only one of the two headers is set, and for a denial it is the reason."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    sent = f"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n{DIAGNOSIS_HEADER}: true\r\n\r\n"
    head, _ = await raw(V1, sent, mesh.certificate("v2"))
    assert (told((head, "")), "x-meshwright-denied: no-traffic-target" in head.lower()) == ((403, ""), True)
