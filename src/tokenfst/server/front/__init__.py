"""The process that handles HTTP. It checks keys and sizes, answers from its cache, and never interprets a constraint.

Read in this order: ``connections`` (slow clients), ``tenants`` (authentication), ``answers`` (the cache), ``ranges``
(parts of artifacts), ``metrics``, ``openapi`` (the document), ``application`` (the routes).
"""
