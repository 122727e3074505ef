"""From the catalog's policy to snapshots: groups, pieces, resources.

Only resources that a change concerns are computed again, and the result does not depend on the order of
changes. The package does not know when or why it is called; the loop (`delivery.loop`) does. Read next:
`group_snapshots` (which groups are computed), `rendering` (how the resources of a group are made),
`consistency` (how they become a snapshot).

It never decides when to compute: `meshwright.delivery.loop` does.
"""
