"""The oracle: decisions about single requests by the text of SMI and our docs.

`decide` answers the question "what happens to this request?" for explain, the command line and the tests. The
translation for proxies (`catalog.policy`) is tested against the oracle, so the oracle never shares code with
the translation: a fault in shared code would stay invisible. The oracle is written for reading and not for
speed.

`targets`, `splits`, `gateway`, `ingress`, `mutual_tls`, `authorization`, `routing` and `service_policies`
read one kind of object each. `route_answers` finds the places behind a Service. `request/` computes the form
in which a sidecar forwards a request, and `transit` applies it on the way. `preconditions` has conditions
apart from policy, for example readiness, and `outside` decides calls out of the mesh. Read next: `decide`.
"""
