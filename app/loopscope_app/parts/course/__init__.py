"""The parts of the Learn screen."""
