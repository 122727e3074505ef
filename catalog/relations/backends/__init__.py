"""Which workloads stand behind a service's port, where, and which of them get traffic.

It never reads policy.
"""
