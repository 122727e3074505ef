"""Envoy's bootstrap, its credentials, and the versions of Envoy that understand it.

It never starts Envoy: the agent does.
"""
