"""Benchmarks: programs that print a table and write JSON.

They measure the library from outside, beside a peer, with the same load. They never assert anything on a
clock, and nothing of the control plane imports them.
"""
