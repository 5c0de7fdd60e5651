"""How each sample model is made, by where it comes from."""
