"""The oracle: decisions about single requests by the text of SMI and our docs.

`decide` answers the question "what happens to this request?" for explain, the command line and the tests. The
translation for proxies (`catalog.policy`) is tested against the oracle, so the oracle never shares code with
the translation: a fault in shared code would stay invisible. The oracle is written for reading and not for
speed.

`targets`, `splits`, `ingress`, `mutual_tls`, `authorization`, `routing` and `service_policies` each read one
kind of object. `request/` computes the form in which a sidecar forwards a request, `transit` applies it on
the way, and `preconditions` has conditions besides policy, for example readiness. `outside` decides calls out
of the mesh. Read next: `decide`.
"""
