"""Actions of clicks, keys and links: the only code that changes a session."""
