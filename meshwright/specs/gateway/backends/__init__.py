"""Readers of policies for the connections of gateways to backends: `backend_tls` for BackendTLSPolicy.

They never decide which policy is in force; `catalog` does.
"""
