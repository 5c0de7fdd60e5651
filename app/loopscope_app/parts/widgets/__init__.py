"""Lists, lanes and markup that several parts use."""
