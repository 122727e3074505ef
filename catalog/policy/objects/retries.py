"""Retries: the failed calls to a service that a client repeats.

Of several Retry objects of one source for one service the oldest is in force (`metadata.creationTimestamp`;
those without one last), then the first by name. It replaces the setting of the mesh. For a split the called
service counts (the apex), whichever backend answers.
"""

from collections.abc import Mapping
from dataclasses import replace

from catalog.policy.values.outbound import OutboundService
from catalog.store.osm import retries_by_source
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.retries import Retries, Retry
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


def precedence(retry: Retry) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of a Retry for one source and destination."""
    return (not retry.created, retry.created, retry.key)


def in_force(view: View, client: ServiceIdentity) -> Mapping[ServiceKey, Retry]:
    """Return the Retry objects in force for a client, by called service.

    For example, of two Retry objects for `cart` the older one is returned.
    """
    retries: dict[ServiceKey, Retry] = {}
    for retry in sorted(retries_by_source(view).lookup(client), key=precedence):
        for key in retry.destinations:
            # The first by precedence stays, if several name the same service.
            retries.setdefault(key, retry)
    return retries


def retry_of(view: View, client: ServiceIdentity, key: ServiceKey) -> Retry | None:
    """Return the Retry that applies to a client's calls to a service, or `None`."""
    return in_force(view, client).get(key)


def with_retries(view: View, service: OutboundService, retry: Retry | None) -> OutboundService:
    """Return a service port with a client's Retry if HTTP; other connections have no requests to repeat."""
    if retry is None or not service.protocol.is_http:
        return service
    return _retried(view, service, retry.retries)


@derived
def _retried(view: View, service: OutboundService, retries: Retries) -> OutboundService:
    """Return a service port with other retries, one object as long as it is needed."""
    del view
    return replace(service, retries=retries)
