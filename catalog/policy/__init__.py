"""What a group of proxies needs: the policy as every driver translates it, and the objects it was made from.

It will never ask the oracle, which it is tested against.
"""
