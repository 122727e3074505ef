"""Envoy's bootstrap, its credentials, and the versions of Envoy that understand it.

The agent starts Envoy.
"""
