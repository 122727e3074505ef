"""The document driver: a group's model as one JSON document, over HTTPS with client certificates.

For proxies and programs that are no Envoy and can look: who may connect to which port of the workload, and
where the services are that it may call. It has no routes, splits or interception: what needs them is reported
against the workload, and left out of the document, so that who takes it at its word never lets more pass.
"""
