"""Model to TensorFlow: a GraphDef with the functions that its loops and branches are."""
