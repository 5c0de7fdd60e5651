"""Runs as HTML files."""
