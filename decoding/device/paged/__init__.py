"""Matchers on the host whose masks stay on the device.

Read in this order: ``paging`` (slots, and the thread that advances matchers), ``matchers``.
"""
