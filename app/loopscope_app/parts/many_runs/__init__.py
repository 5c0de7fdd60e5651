"""Many runs of one model: their inputs, their progress, and pictures of the results."""
