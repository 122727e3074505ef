"""Tests of the judgement of Events about the control plane's own objects."""

from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.reported_problems import NAME, ReportedProblem, reported

GATEWAY = ReportedProblem(
    "MeshConfig mesh/osm-mesh-config",
    "GatewayCertificateNotWritten",
    "RBAC grants no `get` on `secrets`; the chart's value ingressGateway.secrets grants it",
)
SECOND = ReportedProblem("MeshConfig mesh/another", "MW2040", "one MeshConfig counts")
DO = "follow the text of the Event; for all Events: `kubectl -n mesh get events`"


def test_gateway_without_its_certificate_fails_with_the_event_s_text() -> None:
    """This problem is a failure, and is named before others."""
    text = f"{GATEWAY.about}: {GATEWAY.note} ({GATEWAY.reason}), {SECOND.about}: {SECOND.note} (MW2040)"
    assert reported([SECOND, GATEWAY], "mesh") == Check.failed(NAME, text, DO)


def test_other_reported_problem_is_a_warning() -> None:
    """A MeshConfig that does not count is only a warning; without Events the result is good."""
    text = "MeshConfig mesh/another: one MeshConfig counts (MW2040)"
    assert reported([SECOND], "mesh") == Check.warning(NAME, text, DO)
    none = "Events do not report problems of objects in namespace mesh"
    assert reported([], "mesh") == Check.ok(NAME, none)
