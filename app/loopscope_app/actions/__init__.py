"""What clicks, keys and links do: the only writers of a session."""
