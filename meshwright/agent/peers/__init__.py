"""Peers that the proxy has ejected, read from Envoy and reported to the control plane.

The decision to eject is Envoy's; this package only reports it.

The package never ejects an endpoint.
"""
