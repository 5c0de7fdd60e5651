"""Lists, lanes and markup that several parts are made of."""
