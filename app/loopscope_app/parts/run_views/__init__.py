"""Ways to look at the whole run."""
