"""CA, ledger and service certificates of a mesh with several servers.

- `custody`: all of them in records, opened for one server.
- `domains`: the keys of these records, and what a store has lost of them.
The package never knows which store has the records.
"""
