"""Pictures: of graphs as Graphviz text, and as images where Graphviz is installed; of figures as bar charts.

``drawing`` defines a picture of a graph, its parts, and its serialization; ``charts`` has bar charts as SVG, without
Graphviz.

Invariant: a picture's text depends only on its graph, so it can be compared. Cost: linear in the graph.
"""
