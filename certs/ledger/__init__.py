"""Who was issued what: what a ledger is, the one in a file, and how far a proxy has come by it."""
