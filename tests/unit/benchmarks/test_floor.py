"""Test that the bare server of P7 and P9 sends the same as a sidecar of the mesh gets."""

from pathlib import Path

from benchmarks.measurements.floor import messages
from protos.envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryResponse
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET


def test_bare_server_sends_one_complete_response_of_each_type(tmp_path: Path) -> None:
    """Each response is stored below its type, as in a stream's first responses.

    There are endpoints for each called service.
    """
    result = dict(message.split(b"\n", 1) for message in messages(20, tmp_path))
    sent = {type_url.decode(): DeltaDiscoveryResponse.FromString(body) for type_url, body in result.items()}
    assert sorted(sent) == sorted((CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET))
    assert all(
        (delta_discovery_response.type_url, delta_discovery_response.nonce) == (kind, "1")
        for kind, delta_discovery_response in sent.items()
    )
    clusters = {resource.name for resource in sent[CLUSTER].resources}
    assert {resource.name for resource in sent[ENDPOINT].resources} < clusters
    assert len(sent[ENDPOINT].resources) == 5
