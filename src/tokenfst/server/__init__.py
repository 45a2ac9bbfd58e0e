"""``tokenfst serve``: constraints over HTTP, for fleets in any language and for gateways.

The idea: one process speaks HTTP and looks into no constraint; others, which can be killed, do the work. The process
in front checks keys and sizes, keeps answers by the digest of their requests, and queues the rest; a worker gets the
body as it came, and gives back an answer as JSON. So whatever a constraint does to its worker, the others go on.

Invariants: a tenant's constraints lie in a store of its own, and an id is looked up there alone. Everything that waits
or is kept has a bound. An answer that is kept is the one that would be made again.

Read in this order: ``limits`` (what bounds everything), ``tenants`` (who asks), ``refusals`` (errors as JSON),
``questions`` (what is asked, answered in a worker), ``workers`` (a process that answers), ``pool`` (the processes, and
who is next), ``answers`` (what is kept), ``ranges`` (parts of artifacts), ``metrics``, ``logs``, ``openapi`` (the
document), ``application`` (the routes), ``running`` (ports and signals).
"""
