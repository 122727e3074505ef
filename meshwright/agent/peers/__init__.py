"""Whom the proxy has ejected of its peers, asked of Envoy and told to the control plane.

It tells what Envoy has decided, and has no opinion of its own: it ejects nobody.
"""
