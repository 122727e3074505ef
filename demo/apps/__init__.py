"""The bookstore's programs: clients, stores, warehouse and database, which know nothing of a mesh.

They call plain addresses, count what they did and what they served, and answer on a Unix socket of their
own what they counted. They will never claim a success that did not happen, or know a policy.
"""
