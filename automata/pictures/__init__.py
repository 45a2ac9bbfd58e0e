"""Pictures: graphs as Graphviz text, and as images where Graphviz is installed.

``drawing`` (a picture, what it is made of, how it is written).
"""
