"""The document driver: a group's model as one JSON document, over HTTPS with client certificates.

The driver is for proxies and programs other than Envoy that can poll. The document has the identities with
permission to connect to each port of the workload, and the endpoints of callable services. Routes, splits and
interception are not part of the document. A policy that needs them is reported as a problem of the workload
and left out, so that a reader of the document never admits more than the policy.

`translate` makes the document, `server` serves it, and `readers` keeps track of the polling proxies.
"""
