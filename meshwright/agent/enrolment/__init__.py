"""How the agent joins and renews: files and times stand in the agent, all else in a process that ends.

`keeping` and what it imports is light; `program` and what it imports reads certificates and speaks gRPC.
"""
