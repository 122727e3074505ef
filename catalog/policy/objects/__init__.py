"""The effect of single policy objects on a group of proxies, one module for each kind.

It never knows Envoy.
"""
