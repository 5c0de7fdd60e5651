"""The inspector: one place at one moment, its value, origin, ports and attributes."""
