"""One place at one moment: its value, where it came from, its ports and attributes."""
