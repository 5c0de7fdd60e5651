"""What surrounds every view of a run: header, transport, canvas, messages."""
