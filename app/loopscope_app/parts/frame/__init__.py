"""The frame around every view of a run: header, transport, canvas, messages."""
