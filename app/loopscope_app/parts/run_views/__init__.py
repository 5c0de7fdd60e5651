"""Views of the whole run."""
