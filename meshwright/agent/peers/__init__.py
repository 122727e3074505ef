"""Ejected peers of the proxy, read from Envoy and reported to the control plane.

The decision to eject is Envoy's; this package only reports the ejections.

The package never ejects an endpoint.
"""
