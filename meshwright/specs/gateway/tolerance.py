"""Tolerance for gateways and classes of a cluster.

An API server has checked them with its own CRDs, which can be older or newer than these readers, so the
object is always read. Whether it is another controller's is only known from its class. Problems are therefore
not reported, and a field that cannot be read has its default.
"""

from meshwright.mesh.origins import InCluster
from meshwright.specs.fields import Fields
from meshwright.specs.notes import Notes


def is_of_cluster(fields: Fields) -> bool:
    """Return whether fields are from a cluster, and not from a file or etcd."""
    return isinstance(fields.notes.origin, InCluster)


def unreported(spec: Fields) -> Fields:
    """Return the `spec` of an object; from a cluster with notes of its own, which are dropped."""
    if is_of_cluster(spec):
        spec.notes = Notes(spec.notes.origin, spec.notes.key)
    return spec


def close(fields: Fields) -> tuple[str, ...]:
    """Refuse unknown fields from a file; from a cluster return their paths, because they have no effect."""
    fields.close()
    return tuple(fields.at(name) for name in fields.unasked()) if is_of_cluster(fields) else ()
