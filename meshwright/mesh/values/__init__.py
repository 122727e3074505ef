"""Containers for values that are made once and compared often.

A change of one object must not cost a comparison of everything else, on every push to thousands of proxies.
- `picture`: a sorted immutable mapping whose changes since an earlier one are cheap to find. Start here.
- `cached_hash`, `cached_index`: values that compute their hash or index only once.
- `networks`: sets of networks, searched by bisection.
The package never knows what the values mean.
"""
