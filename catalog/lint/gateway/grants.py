"""ReferenceGrants that nearly permit a reference, for the problem of a missing grant."""

from collections.abc import Iterator

from catalog.lint.wording import listed
from catalog.store.gateway import reference_grants
from catalog.store.view import View
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey


def near_grant(view: View, source: Kind, namespace: Namespace, target: ObjectKey) -> str:
    """Return a sentence about a grant with one mistake for a reference; empty without such a grant.

    For example: `ReferenceGrant certs/allow is for HTTPRoutes of namespace shop, and not for Gateways of
    namespace shop. `
    """
    wanted = GrantedFrom(source, namespace)
    # The whole table is read, because a grant in a wrong namespace can be anywhere.
    found = (text for grant in reference_grants(view).values() for text in _mistake(grant, wanted, target))
    return next(found, "")


def _mistake(grant: ReferenceGrant, wanted: GrantedFrom, target: ObjectKey) -> Iterator[str]:
    is_from = wanted in grant.sources
    is_to = not {GrantedTo(target.kind), GrantedTo(target.kind, target.name)}.isdisjoint(grant.targets)
    if grant.key.namespace != target.namespace:
        if is_from and is_to:
            yield (
                f"ReferenceGrant {grant.key} permits references into its own namespace alone: its namespace "
                f"must be {target.namespace}. "
            )
    elif is_to and any(
        item.kind == wanted.kind or item.namespace == wanted.namespace for item in grant.sources
    ):
        sources = listed([_named(item) for item in grant.sources])
        yield f"ReferenceGrant {grant.key} is for {sources}, and not for {_named(wanted)}. "
    elif is_from:
        targets = listed([item.kind.name + (f" {item.name}" if item.name else "s") for item in grant.targets])
        yield f"ReferenceGrant {grant.key} permits references to {targets}, and not to {target}. "


def _named(source: GrantedFrom) -> str:
    return f"{source.kind.name}s of namespace {source.namespace}"
