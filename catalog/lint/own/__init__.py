"""Problems of Meshwright's own kinds: RoutePolicy, UpstreamPolicy, ClientTrafficPolicy and others.

These checks never change the policy in force.
"""
