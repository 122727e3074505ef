"""Programs of the bookstore: clients, stores, warehouse and database, which are not aware of a mesh.

The programs call plain addresses, and count their own calls and the requests served. Each program answers
queries for its counters on a Unix socket. A program never counts a success without a response, and never
knows a policy.
"""
