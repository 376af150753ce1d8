"""Processes and memory: segments, rings, the bridge, workers and operators."""
