"""Answers that sidecars give by themselves, to a diagnosis and to everybody else."""

import re

import pytest

from meshwright.sidecars.layout import DIAGNOSIS_HEADER, OWN_ANSWER_HEADER
from tests.e2e.policy.applications import HTTP
from tests.e2e.policy.calls import raw
from tests.e2e.policy.policies import ALL, EVERYTHING, target
from tests.e2e.policy.running import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

V1 = (WORKLOADS["v1"].address, HTTP)
SEVERAL = "Connection: Upgrade\r\nUpgrade: websocket, websocket\r\n"


def told(answer: tuple[str, str]) -> tuple[int, str]:
    """Return an answer's status, and what it says of whose it is."""
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
async def test_an_own_answer_says_so_to_a_diagnosis(
    mesh: PolicyMesh, line: str, headers: str, status: int, said: str
) -> None:
    """The side, Envoy's flags and its details; requests that do not ask are answered without the header."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    closing = "" if headers else "Connection: close\r\n"
    sides = [("caller", mesh.place("client", "v1", 80), None), ("called", V1, mesh.certificate("client"))]
    for side, place, tls in sides[:1] if line.startswith("CONNECT") else sides:
        sent = f"{line}\r\nHost: shop\r\n{closing}{headers}"
        asked = await raw(place, f"{sent}{DIAGNOSIS_HEADER}: true\r\n\r\n", tls)
        assert told(asked) == (status, f"{side} {said}" if said else "")
        assert told(await raw(place, f"{sent}\r\n", tls)) == (status, "")


async def test_an_application_cannot_say_it(mesh: PolicyMesh) -> None:
    """Its own header of that name ends at its sidecar."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    sent = f"GET /forged HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n{DIAGNOSIS_HEADER}: true\r\n\r\n"
    assert told(await raw(mesh.place("client", "v1", 80), sent)) == (200, "")


async def test_a_denial_has_its_reason_in_place_of_it(mesh: PolicyMesh) -> None:
    """Of the headers of own answers there is one."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    sent = f"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n{DIAGNOSIS_HEADER}: true\r\n\r\n"
    head, _ = await raw(V1, sent, mesh.certificate("v2"))
    assert (told((head, "")), "x-meshwright-denied: no-traffic-target" in head.lower()) == ((403, ""), True)
