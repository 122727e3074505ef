"""Requests that a user watches, received from Envoy's access log service.

Proxies treat them like all others.
"""
