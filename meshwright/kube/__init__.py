"""The Kubernetes API at the edge: connections, requests, and what a server has, kept current.

    api        one request at a time: get, list, create, apply, replace, patch, delete
    discovery  which kinds a server serves
    reflector  all objects of a kind, listed, then watched; a list made anew is compared with what was known

It knows no mesh, and imports nothing of ours. Whatever a server does is a KubeError with a sentence for
people, or is in a reflector's figures.
"""
