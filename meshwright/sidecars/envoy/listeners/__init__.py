"""Listeners (LDS): one module for each direction, and the filter chains that they have in common.

It never reads manifests: the input is a `ProxyPolicy`.
"""
