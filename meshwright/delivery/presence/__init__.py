"""Which proxies are connected, and which the workloads make one expect.

It never sends anything to a proxy.
"""
