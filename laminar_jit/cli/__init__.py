"""The ``laminar`` command. Also ``python -m laminar_jit.cli``.

Modules here import nothing heavy before a command runs: help is there at once.
"""
