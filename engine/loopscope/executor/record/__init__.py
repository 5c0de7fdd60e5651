"""Recording of a run: counts, endings, branches, columns of values."""
