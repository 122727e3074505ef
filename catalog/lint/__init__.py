"""Lint: problems between objects that are each valid alone, for example a TrafficSplit to a missing Service.

It never changes the policy in force.
"""
