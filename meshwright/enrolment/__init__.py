"""Enrolment: how a machine comes by its proxy's certificate, and keeps it current, without anybody's hands.

A machine shows a proof and a signing request; what the proof entitles it to is what is signed. `tokens`,
`limits`, `trust` and `ejections` are values and decisions, `store/` keeps tokens, `proofs/` are the kinds of
proof there are, `service` puts one request together, `server` and `methods` are the gRPC edge: a port for
joining, and one for renewal, at which machines also say whom their proxies leave alone and what they counted
(`reports`). It will never know xDS, what a proxy is served, or a private key; a token's secret it knows while
it reads it.
"""
