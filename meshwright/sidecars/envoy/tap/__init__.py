"""Requests that a user watches, as Envoy's access log service reports them.

It never changes what a proxy does with a request.
"""
