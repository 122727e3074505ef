"""Recovery of records that a store has lost, after a restored snapshot or a deletion by hand.

- `domain`: what a part of the program knows about its records: which losses are none.
- `known_records`: the records as this server has followed them, and the decision what the store has lost.
- `healer`: the writer of lost records.
- `store`: a RecordStore around another one, which writes lost records again, and starts without the store.
- `local_copy`: the contract of a place in which followed records survive a restart.

Each server writes again what it has followed, so nothing is lost that one living server knew. Compared writes
keep two servers from doing harm to each other. The package never overwrites a record that it cannot read.
"""
