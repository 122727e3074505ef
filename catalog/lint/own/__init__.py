"""Problems of Meshwright's own kinds: RoutePolicy, UpstreamPolicy, MutualTLS and others.

These checks never change the policy in force.
"""
