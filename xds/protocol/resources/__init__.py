"""Resources, sets of resources, and snapshots, with the references between them.

A `Resource` is encoded once. A `ResourceSet` holds resources shared by several snapshots, and a `Snapshot`
joins sets: for example one common to all groups, and one of the group alone. All are immutable and built on
`Layers`, so the cost of a change depends on the changed entries alone. A snapshot knows which names differ
from the snapshot before, and which references lack a resource. The package never interprets a resource.
"""
