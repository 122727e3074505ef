"""Resources, sets of resources, and snapshots, with the references between them.

A `Resource` is encoded once. A `ResourceSet` holds resources that several snapshots share, and a `Snapshot`
joins sets: for example one that all groups have in common, and one of its own. All are immutable and built on
`Layers`, so that a change costs as much as it changes. A snapshot knows which names differ from the snapshot
before, and which references have no resource. The package never knows what a resource configures.
"""
