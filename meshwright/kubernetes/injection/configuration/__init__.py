"""The configuration of injection: parsing, its place in the cluster, and the one in force.

This package never looks at a Pod.
"""
