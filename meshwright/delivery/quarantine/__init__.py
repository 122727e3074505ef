"""Quarantine of rejected configuration: the object at fault is excluded, reported, and retried later.

The quarantine works on finished snapshots, and on the pieces named by their resources. Snapshots are made
elsewhere (`delivery.snapshots`).

When a proxy rejects a resource, the quarantine searches for the part of policy at fault (`blame`, `record`)
and excludes this part from the snapshot of the proxy (`reduced_snapshot`, `fallback`, `variants`). The part
is retried from time to time, and reported as a problem of the object at fault (`objects_at_fault`,
`problems`). Requests allowed only by an excluded part are denied, so a rejection never admits more than
policy. Start reading with `quarantine`.
"""
