"""The Model: element types, shapes, graphs, bodies, port maps, addresses; no file format and no arithmetic."""
