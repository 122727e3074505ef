"""What single policy objects come to for a group of proxies, one module for each kind.

It never knows Envoy.
"""
