"""Problems of SMI's kinds: TrafficSplit, TrafficTarget and route groups.

It never changes what is enforced.
"""
