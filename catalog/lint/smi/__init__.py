"""Problems of SMI's kinds: TrafficSplit, TrafficTarget and route groups.

These checks never change the policy in force.
"""
