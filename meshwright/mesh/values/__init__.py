"""Containers for values made once and compared often.

A change of one object must not cost a comparison of everything else, on every push to thousands of proxies.
- `picture`: a sorted immutable mapping with cheap differences from an earlier one. Start here.
- `cached_hash`, `cached_index`: values with a hash or index computed only once.
- `networks`: sets of networks, searched by bisection.
The package never knows what the values mean.
"""
