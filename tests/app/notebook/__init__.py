"""Models and runs in the cells of notebooks."""
