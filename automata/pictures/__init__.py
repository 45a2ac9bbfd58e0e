"""Pictures of graphs: Graphviz text, and images where Graphviz is installed.

``drawing`` defines a picture, its parts, and its serialization.
"""
