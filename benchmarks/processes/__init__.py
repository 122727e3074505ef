"""Processes of a benchmark: control planes, load generators and sidecars, with their keys and their cost.

The package never compares a value with a goal.
"""
