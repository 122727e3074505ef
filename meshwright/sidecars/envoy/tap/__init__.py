"""Requests that a user watches, received from Envoy's access log service.

It never changes how a proxy treats a request.
"""
