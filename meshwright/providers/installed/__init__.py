"""Sources of others: found where they are installed, and asked in a thread of their own."""
