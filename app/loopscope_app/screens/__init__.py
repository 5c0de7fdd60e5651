"""The screens; a function per screen lists its parts."""
