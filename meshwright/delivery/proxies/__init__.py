"""Connected, expected and former proxies: identity, streams, answers, and their effect on the mesh.

A stream is admitted by `identity`, and its events reach `observer`, which informs the others: `registry` (one
record per proxy, `proxy`), `journal` (buffered records of responses), `readiness` (admission to traffic) and
the handling of answers. `participants` and `status` are values for pages; `expiry`, `held_certificates` and
`shown_certificates` watch the validity of certificates; `shared_identities` reports cloned machines.

It never changes the configuration of a proxy.
"""
