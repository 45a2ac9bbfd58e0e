"""The processes that interpret constraints, which may be killed at any time, and their scheduling.

Read in this order: ``questions`` (requests and their answers), ``process`` (one worker), ``pool`` (all of them, with
one queue).
"""
