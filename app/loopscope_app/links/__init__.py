"""The page's address: a moment as text."""
