"""Envoy's bootstrap, the credentials in it, and the Envoys that understand it.

It never starts an Envoy: the agent does.
"""
