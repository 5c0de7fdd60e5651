"""What a trace means: why a loop ended, what pattern it is, how a value went over the iterations, where it came from."""
