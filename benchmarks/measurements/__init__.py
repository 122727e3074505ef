"""Measurements of a served mesh: start, cost of changes and of moving endpoints, and a bare server.

The package never compares a value with a goal.
"""
