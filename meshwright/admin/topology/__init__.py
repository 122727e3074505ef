"""Graph of traffic between services: edges that policy allows, edges that proxies have observed, or both.

`graph` combines a view of the mesh with reported statistics, `allowed_edges` computes the edges of policy,
`parts` selects a part of the graph, and `layout` arranges the nodes of a picture. All functions are pure. The
package never knows HTML.
"""
