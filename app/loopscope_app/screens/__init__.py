"""One file per screen; each reads as a list of parts."""
