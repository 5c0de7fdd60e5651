"""What a run remembers: when each step was, which control flow ran, and every value, kept or computed again."""
