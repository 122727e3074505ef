"""The policy for a group of proxies, which every driver translates, and the objects that it was made from.

It never asks the oracle, because tests compare the two.
"""
