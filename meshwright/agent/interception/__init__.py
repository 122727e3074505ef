"""The rules that lead a network namespace's traffic through its proxy."""
