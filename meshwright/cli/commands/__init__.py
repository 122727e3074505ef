"""The commands, a module each: from arguments to what is printed, and a status."""
