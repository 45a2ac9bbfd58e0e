"""Events: what a text that is still being written holds, as soon as that is decided.

Read in this order: ``event`` (what is told), ``json_events`` (JSON), ``capture_events`` (captures), ``stream`` (a
text, and the part of all constraints), ``partial`` (values that grow).
"""
