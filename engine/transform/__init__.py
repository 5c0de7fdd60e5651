"""From one Model to another."""
