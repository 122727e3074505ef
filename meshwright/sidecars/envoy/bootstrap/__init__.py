"""Envoy's bootstrap, its credentials, and the versions of Envoy that understand it.

The package never starts Envoy: the agent does.
"""
