"""Random models with control flow: declared ports, all kinds of element types, shapes, operations, loops, branches and variables."""
