"""Tests of OSM's Retry: published manifests are read, with the retry conditions of Envoy."""

from datetime import timedelta

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, ServiceName
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from tests.meshes.reading import complaints, reading, value

SOURCE = "source: {kind: ServiceAccount, name: curl, namespace: curl}"
DESTINATIONS = "destinations: [{kind: Service, name: httpbin, namespace: httpbin}]"
POLICY = "retryPolicy: {retryOn: 5xx}"
CURL = ServiceIdentity(Namespace("curl"), ServiceAccountName("curl"))
HTTPBIN = ServiceKey(Namespace("httpbin"), ServiceName("httpbin"))


def manifest(*fields: str) -> str:
    """Return a Retry in namespace curl."""
    spec = "\n  ".join(fields)
    head = "apiVersion: policy.openservicemesh.io/v1alpha1\nkind: Retry\n"
    return f"{head}metadata: {{name: retry, namespace: curl}}\nspec:\n  {spec}\n"


def policy(text: str) -> str:
    """Return a Retry with the fields of its retryPolicy."""
    return manifest(SOURCE, DESTINATIONS, f"retryPolicy: {{{text}}}")


def retries(text: str) -> Retries:
    """Read a retryPolicy."""
    ((_, result),) = reading(policy(text)).objects
    assert isinstance(result, Retry)
    return result.retries


def test_retry_of_the_osm_guide_is_read() -> None:
    """The example of the guide has every field."""
    text = policy("retryOn: 5xx, perTryTimeout: 1s, numRetries: 5, retryBackoffBaseInterval: 1s")
    second = timedelta(seconds=1)
    expected = Retries((RetryCondition.SERVER_ERROR,), 5, second, second)
    assert value(text) == Retry(PolicyKey(Namespace("curl"), "retry"), CURL, (HTTPBIN,), expected)


def test_retry_defaults_are_one_attempt_and_25_milliseconds() -> None:
    """Namespaces that are left out are the object's own."""
    here = manifest(
        "source: {kind: ServiceAccount, name: curl}", "destinations: [{kind: Service, name: web}]", POLICY
    )
    key = ServiceKey(Namespace("curl"), ServiceName("web"))
    expected = Retries((RetryCondition.SERVER_ERROR,), 1, None, timedelta(milliseconds=25))
    assert value(here) == Retry(PolicyKey(Namespace("curl"), "retry"), CURL, (key,), expected)


@pytest.mark.parametrize("on", ["'reset,5xx'", "' 5xx , reset'", "'5xx,reset,5xx'"])
def test_retry_conditions_are_sorted_without_duplicates(on: str) -> None:
    """Spaces around the commas are allowed."""
    assert retries(f"retryOn: {on}").on == (RetryCondition.SERVER_ERROR, RetryCondition.RESET)


@pytest.mark.parametrize("word", RetryCondition)
def test_every_retry_condition_is_read(word: RetryCondition) -> None:
    """Each condition is valid on its own."""
    assert retries(f"retryOn: {word}").on == (word,)
    assert complaints(policy(f"retryOn: {word}")) == []


def test_zero_retries_are_read() -> None:
    """The value 0 turns retries off and is not replaced by a default."""
    assert retries("retryOn: 5xx, numRetries: 0").attempts == 0


@pytest.mark.parametrize(
    "word", ["retriable-headers", "retriable-status-codes", "http3-post-connect-failure"]
)
def test_retry_conditions_without_effect_are_a_warning(word: str) -> None:
    """The other conditions are in force."""
    text = f"retryOn: '{word},reset'"
    assert retries(text).on == (RetryCondition.RESET,)
    assert complaints(policy(text)) == [("warning", "MW1030", "spec.retryPolicy.retryOn", "")]


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        (manifest(DESTINATIONS, POLICY), "MW1011", "spec.source"),
        (manifest(SOURCE, POLICY), "MW1011", "spec.destinations"),
        (manifest(SOURCE, "destinations: []", POLICY), "MW1017", "spec.destinations"),
        (manifest(SOURCE, DESTINATIONS), "MW1011", "spec.retryPolicy"),
        (
            manifest(SOURCE.replace("namespace: curl", "namespace: shop"), DESTINATIONS, POLICY),
            "MW1016",
            "spec.source.namespace",
        ),
        (
            manifest(SOURCE.replace("ServiceAccount", "Service"), DESTINATIONS, POLICY),
            "MW1013",
            "spec.source.kind",
        ),
        (
            manifest(SOURCE, DESTINATIONS.replace("kind: Service,", ""), POLICY),
            "MW1011",
            "spec.destinations[0].kind",
        ),
        (
            manifest(SOURCE, f"{DESTINATIONS[:-1]}, {DESTINATIONS.partition('[')[2]}", POLICY),
            "MW1015",
            "spec.destinations[1].name",
        ),
        (policy("numRetries: 1"), "MW1011", "spec.retryPolicy.retryOn"),
        (policy("retryOn: ''"), "MW1013", "spec.retryPolicy.retryOn"),
        (policy("retryOn: 5XX"), "MW1013", "spec.retryPolicy.retryOn"),
        (policy("retryOn: '5xx,'"), "MW1013", "spec.retryPolicy.retryOn"),
        (policy("retryOn: 5xx reset"), "MW1013", "spec.retryPolicy.retryOn"),
        (policy("retryOn: 503"), "MW1010", "spec.retryPolicy.retryOn"),
        (policy("retryOn: 5xx, numRetries: -1"), "MW1013", "spec.retryPolicy.numRetries"),
        (policy("retryOn: 5xx, perTryTimeout: 1"), "MW1010", "spec.retryPolicy.perTryTimeout"),
        (
            policy("retryOn: 5xx, retryBackoffBaseInterval: 0s"),
            "MW1013",
            "spec.retryPolicy.retryBackoffBaseInterval",
        ),
        (policy("retryOn: 5xx, retries: 3"), "MW1012", "spec.retryPolicy.retries"),
    ],
)
def test_invalid_retry_is_refused_with_its_field(text: str, code: str, field: str) -> None:
    """No object is in force."""
    assert ("error", code, field) in [complaint[:3] for complaint in complaints(text)]
    assert reading(text).objects == ()
