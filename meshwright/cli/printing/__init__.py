"""How answers look on a terminal and in files."""
