"""From the catalog's policy to snapshots: groups, pieces, resources.

A change recomputes only the resources concerned, and the result does not depend on the order of changes. Read
next: `group_snapshots` (which groups are computed), `rendering` (how the resources of a group are made),
`consistency` (how they become a snapshot).

The package never decides when to compute: the loop (`meshwright.delivery.loop`) does.
"""
