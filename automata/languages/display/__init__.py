"""How languages are shown to people: pictures, readable expressions, and why a text is not in a language.

All of it is for reading: texts are bounded and cut in the middle, and nothing is computed from them.

Read in this order: ``drawing`` (byte automata as pictures), ``readable`` (expressions and classes of characters as
people write them), ``explanation`` (where a text leaves a language, and what could have stood there).
"""
