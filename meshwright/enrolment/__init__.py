"""Enrolment: a machine obtains the certificate of its proxy, and renews it, without manual steps.

A machine sends a proof and a signing request, and the proof determines the identity that is signed. `tokens`,
`limits`, `trust` and `ejections` are values and decisions, `store/` stores tokens, `proofs/` has the kinds of
proof, `service` handles one request, and `server` and `methods` are the gRPC edge: a port for joining, and
one for renewal, at which machines also report statistics (`reports`) and the endpoints that their proxies
eject.

The edge uses gRPC's listener, TLS and connection limits from `xds`. Enrolment never knows discovery or a
proxy's configuration, and never receives a private key; it has a token's secret only while it reads the
token.
"""
