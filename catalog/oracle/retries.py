"""Which Retry holds for a call: the oldest of its source that names the service, else the first by name."""

from catalog.store.osm import retries
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.retries import Retry
from meshwright.mesh.service import ServiceKey


def tried_again(view: View, client: ServiceIdentity, key: ServiceKey) -> Retry | None:
    """Return the Retry of a client's calls to a service."""
    mine = (each for each in retries(view).values() if each.source == client and key in each.destinations)
    return min(mine, key=lambda each: (each.created or "~", each.key), default=None)
