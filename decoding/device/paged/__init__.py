"""Matchers on the host whose masks stay on the device.

Invariant: a slot that a row of the current step uses is not overwritten before the next step. Cost: a step of the
matcher on the host for each row, and a copy of each new mask.

Read in this order: ``paging`` (slots, and the thread that advances matchers), ``matchers``.
"""
