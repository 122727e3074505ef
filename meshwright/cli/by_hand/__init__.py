"""Manifests that are changed on the command line: their text, of which only what changes is written anew."""
