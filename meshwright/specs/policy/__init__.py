"""Readers of our own policies, `policy.meshwright.dev`, for features without a kind in SMI or OSM.

They never decide which of two policies has precedence; `catalog` does.
"""
