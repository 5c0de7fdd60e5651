"""``loopscope test``: expectations about loops and branches, verified on runs of a model."""
