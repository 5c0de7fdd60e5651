"""The program that a file was converted from, in its own framework, beside our run of the file."""
