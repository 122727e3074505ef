"""Evaluation of single kinds of policy objects for a group of proxies, one module per kind.

The results are in words of the mesh, and do not depend on Envoy.

It never knows Envoy.
"""
