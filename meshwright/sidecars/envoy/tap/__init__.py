"""Watched requests, received from Envoy's access log service.

The package never changes how a proxy treats a request.
"""
