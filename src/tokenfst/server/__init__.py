"""``tokenfst serve``: constraints over HTTP, for clients in any language and for gateways.

The front process handles HTTP and never interprets a constraint. Worker processes do that; they can be killed. The
front process checks keys and sizes, caches answers by the digest of their requests, and queues the rest. A worker
receives the unchanged request body and returns an answer as JSON. So a constraint that crashes its worker does not
affect other requests.

Invariants: a tenant's constraints lie in a separate store, and an id is looked up only there. Every queue and every
cache is bounded. A cached answer equals the answer that would be computed again.

Read in this order: ``limits`` (all bounds), ``refusals`` (errors as JSON), ``logs``, ``workers`` (the processes that
answer), ``front`` (HTTP), ``running`` (ports and signals).
"""
