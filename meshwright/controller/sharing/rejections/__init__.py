"""Policy that proxies reject, as far as it is proved, in the records that several servers share.

- `shared_rejections`: the verdicts of this server, written for the others, and theirs, delivered to this one.
- `agreement`: what is still to be written, and what the other servers have changed.
- `feed`: the verdicts in the records that this server follows.

The package never searches for the policy at fault: the search stays on the server of the proxy. The form of
the records is in `meshwright.delivery.quarantine.verdict_fields`.
"""
