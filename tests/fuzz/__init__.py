"""Fuzz targets: programs that turn any bytes into calls of the library. ``python -m tests.fuzz NAME`` runs one.

- ``targets.py``: what each target does with its bytes. A target returns, or raises one of the errors that the library
  promises; whatever else happens is a fault.
- ``__main__.py``: the driver. It uses atheris (libFuzzer for Python) where that is installed, and mutates without
  looking at coverage where it is not, or where ``--blind`` says so.

Inputs worth keeping lie in ``tests/hostile/inputs/NAME``; ``tests/hostile/test_hostile_inputs.py`` runs them all again.
"""
