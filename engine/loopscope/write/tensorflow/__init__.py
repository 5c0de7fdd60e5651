"""Writing of models as TensorFlow GraphDefs, with functions for loops and branches."""
