"""Envoy's bootstrap, the credentials in it, and the supported versions of Envoy.

The package never starts Envoy: the agent does.
"""
