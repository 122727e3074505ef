"""Tests of TLS versions, cipher suites and curves inside the mesh, for clients with a valid certificate."""

import asyncio
import ssl

import pytest

from tests.e2e.policy.applications import ECHO, HTTP
from tests.e2e.policy.policies import ALL, EVERYTHING, Document, config, target
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

V1_2, V1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
RULES = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))


def versions(lowest: str, highest: str) -> Document:
    """Return a MeshConfig with a minimum and a maximum version."""
    return config(sidecar={"tlsMinProtocolVersion": lowest, "tlsMaxProtocolVersion": highest})


async def handshake(mesh: PolicyMesh, lowest: ssl.TLSVersion, highest: ssl.TLSVersion) -> str:
    """Return the negotiated version and the response's status, or "" if the handshake is refused."""
    context = mesh.certificate("client")
    context.minimum_version, context.maximum_version = lowest, highest
    try:
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(WORKLOADS["v1"].address, HTTP, ssl=context)
            try:
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                status = (await reader.readline()).split(b" ")[1].decode()
                return f"{writer.get_extra_info('ssl_object').version()} {status}"
            finally:
                writer.transport.abort()
    except (OSError, IndexError):
        return ""


@pytest.mark.parametrize(
    ("lowest", "highest", "with_1_2", "with_1_3", "with_both"),
    [
        ("TLSv1_2", "TLSv1_3", "TLSv1.2 200", "TLSv1.3 200", "TLSv1.3 200"),
        ("TLSv1_3", "TLSv1_3", "", "TLSv1.3 200", "TLSv1.3 200"),
        ("TLSv1_2", "TLSv1_2", "TLSv1.2 200", "", "TLSv1.2 200"),
    ],
    ids=["between", "floor", "ceiling"],
)
async def test_client_outside_the_configured_tls_versions_is_refused(
    mesh: PolicyMesh, lowest: str, highest: str, with_1_2: str, with_1_3: str, with_both: str
) -> None:
    """A client below the minimum or above the maximum is refused, and calls through both sidecars succeed."""
    await mesh.enforce(*RULES, versions(lowest, highest))
    assert await handshake(mesh, V1_2, V1_2) == with_1_2
    assert await handshake(mesh, V1_3, V1_3) == with_1_3
    assert await handshake(mesh, V1_2, V1_3) == with_both
    assert (await mesh.get("client", "v1")).status == 200


async def test_sidecars_use_the_configured_tls_version(mesh: PolicyMesh) -> None:
    """Between sidecars, the version is the one of the configured range, by the server's counter."""
    for version, wanted in (("TLSv1_2", "TLSv1.2"), ("TLSv1_3", "TLSv1.3")):
        await mesh.enforce(*RULES, versions(version, version))
        counter = rf"ssl.versions.{wanted}"
        before = await mesh.live.stat("v1", counter)
        assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
        assert await mesh.live.stat("v1", counter) > before


async def test_tls_1_1_is_refused_with_an_alert(mesh: PolicyMesh) -> None:
    """TLS 1.1 is refused with a protocol version alert, and the same client succeeds with TLS 1.2."""
    await mesh.enforce(*RULES)
    older, newer = await openssl(mesh, "-tls1_1"), await openssl(mesh, "-tls1_2")
    assert ("alert protocol version" in older, "Cipher is (NONE)" in older) == (True, True)
    assert ("alert protocol version" in newer, "Cipher is (NONE)" in newer) == (False, False)


AES, CHACHA = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"


@pytest.mark.parametrize(
    ("said", "how", "spoken", "refused"),
    [
        ({"cipherSuites": [AES]}, ("-tls1_2", "-cipher"), AES, CHACHA),
        ({"cipherSuites": [CHACHA]}, ("-tls1_2", "-cipher"), CHACHA, AES),
        # In TLS 1.2 a client without the certificate's own curve is refused in any case.
        ({"ecdhCurves": ["P-256"]}, ("-tls1_3", "-curves"), "P-256", "X25519"),
        ({"ecdhCurves": ["X25519"]}, ("-tls1_3", "-curves"), "X25519", "P-256"),
    ],
)
async def test_only_configured_cipher_suites_and_curves_are_accepted(
    mesh: PolicyMesh, said: Document, how: tuple[str, str], spoken: str, refused: str
) -> None:
    """If a MeshConfig lists suites or curves, a client needs one of them.

    Without a list, both of the tested ones are accepted.
    """
    ways = [(*how, item) for item in (spoken, refused)]
    await mesh.enforce(*RULES)
    assert ["Cipher is (NONE)" in await openssl(mesh, *way) for way in ways] == [False, False]
    await mesh.enforce(*RULES, config(sidecar=said))
    assert ["Cipher is (NONE)" in await openssl(mesh, *way) for way in ways] == [False, True]
    assert (await mesh.get("client", "v1")).status == 200


async def openssl(mesh: PolicyMesh, *how: str) -> str:
    """Return the output of `openssl s_client` for a handshake, by default with all cipher suites."""
    mesh.certificate("client")  # written beside the mesh's state
    file = str(mesh.live.state / "client.pem")
    suites = () if "-cipher" in how else ("-cipher", "ALL:@SECLEVEL=0")
    process = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", "-connect", f"{WORKLOADS['v1'].address}:{HTTP}", *how),
        *("-cert", file, "-key", file, *suites),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode(errors="replace")
