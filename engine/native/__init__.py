"""Native code of other people, in processes of its own: it reads untrusted bytes, and when it crashes, we do not."""
