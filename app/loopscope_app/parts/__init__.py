"""Visible parts of the screens; a function draws each of them."""
