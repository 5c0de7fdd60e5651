"""Tests of engine/native."""
