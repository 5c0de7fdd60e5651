"""Tests of engine/loopscope/native."""
