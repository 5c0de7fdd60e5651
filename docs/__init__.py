"""Sources of the documentation site; ``docs.__main__`` builds it."""
