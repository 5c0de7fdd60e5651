"""Models damaged at random, and everything that the project does with them."""
