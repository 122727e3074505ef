"""Processes of a benchmark: control planes, load generators and sidecars, with their keys and their cost.

It never judges a figure.
"""
