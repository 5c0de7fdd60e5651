"""Many runs of one model: which inputs, how far they are, and pictures of what came of them."""
