"""Problems of the kinds of Open Service Mesh: Egress, IngressBackend, Retry and others.

It never changes what is enforced.
"""
