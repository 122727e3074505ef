"""Whether a sidecar can reach its control plane and, if not, why, and what is to be done.

`observations` are what is seen on the way there, step by step; `reasons` makes of them one reason of a closed
vocabulary, with a sentence. Both are pure. `probing` goes the way, with the proxy's own credentials.
"""
