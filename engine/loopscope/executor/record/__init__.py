"""What a run writes down: counts, endings, branches, columns of values."""
