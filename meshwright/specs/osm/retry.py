"""OSM's Retry, policy.openservicemesh.io v1alpha1: retries of requests from a source.

The source must be in the object's own namespace, because an author may set policy only for ServiceAccounts
there.
"""

from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import SERVICE, SERVICE_ACCOUNT
from meshwright.mesh.names import ServiceAccountName, ServiceName
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.manifest import Manifest
from meshwright.specs.osm.unenforced_policy import not_enforced
from meshwright.specs.quotes import never
from meshwright.specs.values.durations import wait
from meshwright.specs.values.references import namespace_name, object_name

WITHOUT_EFFECT: Final = ("http3-post-connect-failure", "retriable-headers", "retriable-status-codes")
"""Retry conditions of Envoy that need HTTP/3, or details without a field in a Retry."""

MOST: Final = 2**32 - 1
_WORDS: Final = tuple(RetryCondition)
ON_RULE: Final = f"{one_of(_WORDS)}, or a comma-separated list of them"
_DEFAULT: Final = Retries(())


def retry(manifest: Manifest) -> Retry:
    """Read a Retry; the namespace of source and destinations defaults to the object's."""
    fields = manifest.spec()
    source = _source(manifest, fields.section("source", required=True))
    sections = fields.sections("destinations", required=True)
    destinations = [_destination(manifest, section) for section in sections]
    for index in duplicates(destinations):
        sections[index].wrong("name", "must differ from the other destinations", Code.DUPLICATE)
    if fields.has("destinations") and not sections:
        fields.wrong("destinations", "must have at least one service", Code.EMPTY)
    retries = _retries(fields.section("retryPolicy", required=True))
    fields.close()
    return Retry(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        source=source,
        destinations=tuple(sorted(destinations)),
        retries=retries,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _source(manifest: Manifest, fields: Fields) -> ServiceIdentity:
    _kind(fields, SERVICE_ACCOUNT.name)
    name = object_name(fields, "name")
    namespace = namespace_name(fields, "namespace", manifest.namespace)
    fields.close()
    if namespace != manifest.namespace:
        fields.wrong("namespace", f"must be the object's own namespace {manifest.namespace}", Code.NAMESPACE)
    return ServiceIdentity(namespace, ServiceAccountName(name))


def _destination(manifest: Manifest, fields: Fields) -> ServiceKey:
    _kind(fields, SERVICE.name)
    name = object_name(fields, "name")
    service_key = ServiceKey(namespace_name(fields, "namespace", manifest.namespace), ServiceName(name))
    fields.close()
    return service_key


def _kind(fields: Fields, name: str) -> None:
    fields.choice("kind", (name,), name)
    if not fields.has("kind"):
        fields.required_text("kind", one_of((name,)))


def _retries(fields: Fields) -> Retries:
    on = _on(fields)
    attempts = fields.whole("numRetries", 0, MOST, default=_DEFAULT.attempts)
    retries = Retries(
        on=on,
        attempts=_DEFAULT.attempts if attempts is None else attempts,
        per_try=wait(fields, "perTryTimeout"),
        base=wait(fields, "retryBackoffBaseInterval") or _DEFAULT.base,
    )
    fields.close()
    return retries


def _on(fields: Fields) -> tuple[RetryCondition, ...]:
    # Envoy takes a comma-separated list in one text, as OSM does.
    text = fields.required_text("retryOn", ON_RULE, never)
    words = [item.strip() for item in text.split(",")] if text else []
    if any(word not in _WORDS and word not in WITHOUT_EFFECT for word in words):
        fields.wrong("retryOn", ON_RULE)
    if idle := [word for word in words if word in WITHOUT_EFFECT]:
        message = not_enforced(
            f"requests are not retried for {', '.join(idle)}, because a Retry lacks a field for the status "
            "codes or headers of these conditions"
        )
        fields.notes.warn(Code.NOT_ENFORCED, fields.at("retryOn"), message)
    # In the order of the enum, so that the same conditions in another order give an equal value.
    return tuple(condition for condition in RetryCondition if condition in words)
