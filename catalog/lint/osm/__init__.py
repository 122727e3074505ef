"""Problems of the kinds of Open Service Mesh: Egress, IngressBackend, Retry and others.

These checks never change the policy in force.
"""
