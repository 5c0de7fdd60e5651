"""What each operation computes: one file or folder per category of the OpenVINO spec; arrays and element types, never graphs."""
