"""What stands round every view of a run: header, transport, canvas, messages."""
