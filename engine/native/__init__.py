"""Native code of other people, in processes of its own: it meets bytes that nobody vouches for, and it crashes, we don't."""
