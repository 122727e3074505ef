"""Our own kinds and annotations, under `meshwright.dev`."""
