"""Quarantine of rejected configuration: the object at fault is excluded, reported, and retried later.

It works on finished snapshots, and on the pieces that their resources name. It never makes a snapshot from
the mesh.

When a proxy rejects a resource, the quarantine searches for the part of policy at fault (`blame`, `record`)
and excludes this part from the snapshot of the proxy (`reduced_snapshot`, `fallback`, `variants`). It retries
the part from time to time, and reports it as a problem of the object (`objects_at_fault`, `problems`).
Requests that only an excluded part allows are denied, so that a rejection never admits more than policy.
Start reading with `quarantine`.
"""
