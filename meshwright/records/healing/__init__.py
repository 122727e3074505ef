"""Healing of a store that has lost records: after a restored snapshot, or a deletion by hand.

- `domain`: what a part of the program knows about its records: which losses are none.
- `known`: the records as this server has followed them, and the decision what the store has lost.
- `store`: a RecordStore around another one, which writes lost records again, and starts without the store.
- `keeping`: the contract of a place in which followed records survive a restart.

Each server heals what it has followed. Nothing is lost that one living server knew: whoever has the newer
content writes it. Compared writes keep two servers from doing harm to each other.
"""
