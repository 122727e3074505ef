"""The Envoy driver: ProxyPolicy in, encoded xDS resources out, and Envoy's bootstrap.

Pure functions, a module per kind of resource. It will never look at policy objects, open a socket, or use
a field that Envoy 1.40 calls deprecated.
"""
