"""The workloads behind a port of a service, their addresses, and which of them receive traffic.

It never reads policy.
"""
