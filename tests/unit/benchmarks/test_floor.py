"""What the bare server of P7 and P9 sends is what a sidecar of the mesh gets."""

from pathlib import Path

from benchmarks.measurements.floor import messages
from protos.envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryResponse
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET


def test_a_response_of_each_type_with_all_that_the_others_name(tmp_path: Path) -> None:
    """Each below its type, as a stream is sent it at first: endpoints for each service that is called."""
    found = dict(each.split(b"\n", 1) for each in messages(20, tmp_path))
    sent = {type_url.decode(): DeltaDiscoveryResponse.FromString(body) for type_url, body in found.items()}
    assert sorted(sent) == sorted((CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET))
    assert all((each.type_url, each.nonce) == (kind, "1") for kind, each in sent.items())
    clusters = {each.name for each in sent[CLUSTER].resources}
    assert {each.name for each in sent[ENDPOINT].resources} < clusters
    assert len(sent[ENDPOINT].resources) == 5
