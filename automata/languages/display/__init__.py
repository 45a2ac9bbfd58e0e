"""Presentation of languages to people: pictures, readable expressions, and explanations of why a text is rejected.

The results are for display only: long texts are bounded and cut in the middle, and nothing is computed from them.

Invariant: what is shown is true of the language, but may be cut. Cost: linear in what is shown.

Read in this order: ``drawing`` (byte automata as pictures), ``readable`` (expressions and character classes in familiar
notation), ``explanation`` (where a text leaves a language, and what was expected there).
"""
