"""Tests of the agent's reports to the whole server: TLS, certificates, refusals."""

from pathlib import Path
from typing import Any

import pytest

from certs.keys.pair import Pair
from meshwright.agent.statistics.report_client import ReportRefused, send
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.feature.identity.conftest import serve
from tests.feature.identity.test_enrolment import PORTS, Serve
from tests.feature.identity.test_identity import NAME, workload

__all__ = ["serve"]

SERVER_NAME = "ads.cluster.local"
REPORT = wire.ReportRequest(run="a", number=1, seconds=10).SerializeToString()


def put(folder: Path, pair: Pair, roots: bytes) -> Path:
    """Write the credentials of an agent."""
    folder.mkdir()
    (folder / CHAIN_FILE).write_bytes(pair.chain_pem)
    (folder / KEY_FILE).write_bytes(pair.key.reveal())
    (folder / AUTHORITY_FILE).write_bytes(roots)
    return folder


async def told(server: Any, files: Path, name: str = SERVER_NAME, port: str = "renewal") -> int | str:
    """Send a report, and return the server's interval or the reason of the failure."""
    try:
        return await send(server.bound.enrolment[port], name, files, REPORT)
    except ReportRefused as error:
        return str(error)


async def test_report_is_accepted_only_with_an_issued_certificate(serve: Serve, tmp_path: Path) -> None:
    """An unissued certificate is refused, and no report is sent to a server of another name or root."""
    server = await serve(workload("one"), **PORTS)
    roots, pair = server.authority.trust_bundle(), server.certificate(NAME)
    files = put(tmp_path / "good", pair, roots)
    assert await told(server, files) == 10
    assert (await server.ask("GET", "/api/v1/stat/proxies"))["reporting"]["proxies"] == 1
    stranger = put(tmp_path / "stranger", server.certificate("x.store.shop", issued=False), roots)
    assert "answered with status 7: the request is refused: see the log of the control plane" in str(
        await told(server, stranger)
    )
    assert "cannot report to" in str(await told(server, files, name="other.cluster.local"))
    own = put(tmp_path / "own", pair, pair.chain_pem)
    assert "cannot report to" in str(await told(server, own))
    assert (await server.ask("GET", "/api/v1/stat/proxies"))["reporting"]["proxies"] == 1


async def test_report_to_a_port_without_the_method_is_refused(serve: Serve, tmp_path: Path) -> None:
    """An older control plane answers the same way, so it is not tried again soon.

    A closed port is retried.
    """
    server = await serve(workload("one"), **PORTS)
    files = put(tmp_path / "good", server.certificate(NAME), server.authority.trust_bundle())
    with pytest.raises(ReportRefused) as refused:
        await send(server.bound.enrolment["enrolment"], SERVER_NAME, files, REPORT)
    assert (refused.value.refused, refused.value.unfit) == (True, False)
    with pytest.raises(ReportRefused) as away:
        await send(HostPort("127.0.0.1", 1), SERVER_NAME, files, REPORT)
    assert not away.value.refused


async def test_report_with_an_invalid_count_is_unfit(serve: Serve, tmp_path: Path) -> None:
    """The server's reason is in the error, and the agent's next valid report is accepted."""
    server = await serve(workload("one"), **PORTS)
    files = put(tmp_path / "good", server.certificate(NAME), server.authority.trust_bundle())
    called = wire.Called(namespace="default", service="shop", port=80)
    requests = wire.Requests(by_class=(0, 2**31 + 1, 0, 0, 0))
    edge = wire.Edge(direction=wire.OUTBOUND, protocol=wire.HTTP, called=called, requests=requests)
    report = wire.ReportRequest(run="a", number=1, seconds=10, edges=[edge]).SerializeToString()
    with pytest.raises(ReportRefused, match="must be at most 2147483648") as unfit:
        await send(server.bound.enrolment["renewal"], SERVER_NAME, files, report)
    assert (unfit.value.refused, unfit.value.unfit) == (True, True)
    assert await told(server, files) == 10


async def test_report_with_half_written_credentials_fails_with_a_reason(serve: Serve, tmp_path: Path) -> None:
    """A key that does not match, or is missing, is an error of this report only."""
    server = await serve(workload("one"), **PORTS)
    files = put(tmp_path / "good", server.certificate(NAME), server.authority.trust_bundle())
    (files / KEY_FILE).write_bytes(server.certificate(NAME).key.reveal())
    assert "cannot report to" in str(await told(server, files))
    (files / KEY_FILE).unlink()
    assert "No such file" in str(await told(server, files))
