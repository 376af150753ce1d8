"""Compiled kernels: the lowest layer.

Everything here is either a ``@kernel`` function over numbers, addresses and
numpy arrays, or what such functions need to be compiled and cached. Nothing in
this layer imports from the layers above.
"""
