"""The dock beside the canvas: the verdict, the outputs, four tabs, and drawers over them."""
