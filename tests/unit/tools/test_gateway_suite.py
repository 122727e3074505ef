"""Tests of the runner of the Gateway API's conformance suite, without a cluster."""

from tests.kubernetes.gateway.suite import Choice, Implementation, Outcome, Results, parse

OUTPUT = """=== RUN   TestConformance/MeshBasic
--- FAIL: TestConformance (218.41s)
    --- SKIP: TestConformance/GatewayClassObservedGenerationBump (0.00s)
    --- PASS: TestConformance/MeshBasic (0.43s)
        --- PASS: TestConformance/MeshBasic/Requests (0.43s)
    --- FAIL: TestConformance/MeshHTTPRouteWeight (31.02s)
        --- FAIL: TestConformance/MeshHTTPRouteWeight/Requests (31.02s)
"""


def test_outcomes_are_those_of_whole_tests() -> None:
    """Parts of a test, and the suite as a whole, have no outcome of their own."""
    results = Results(parse(OUTPUT), OUTPUT)
    assert results.names(Outcome.PASSED) == {"MeshBasic"}
    assert results.names(Outcome.FAILED) == {"MeshHTTPRouteWeight"}
    assert results.names(Outcome.SKIPPED) == {"GatewayClassObservedGenerationBump"}


def test_flags_name_labels_and_no_empty_choice() -> None:
    """The suite takes an empty list of features for a name that it does not know."""
    choice = Choice(("MESH-HTTP",), (), labels={"meshwright.dev/inject": "true", "team": "shop"}, patience=5)
    assert choice.flags() == [
        "-conformance-profiles=MESH-HTTP",
        "-namespace-labels=meshwright.dev/inject=true,team=shop",
        "-timeout-config-overrides=MaxTimeToConsistency:5",
    ]


def test_implementation_names_everything_that_a_report_must_have() -> None:
    """The suite refuses to write a report without one of these."""
    flags = {flag.partition("=")[0]: flag.partition("=")[2] for flag in Implementation("1.2.3").flags()}
    assert flags.keys() == {"-version", "-organization", "-project", "-url", "-contact"}
    assert all(flags.values())
