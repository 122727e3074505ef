"""From what the catalog wants to what is served: groups, pieces, resources, snapshots.

It makes again only what a change concerns. It will never know when or why it is asked: that is `waves`'.
"""
