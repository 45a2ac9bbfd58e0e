"""Presentation of languages to people: pictures, readable expressions, and explanations of why a text is rejected.

The results are for display only: long texts are bounded and cut in the middle, and nothing is computed from them.

Read in this order: ``drawing`` (byte automata as pictures), ``readable`` (expressions and character classes in familiar
notation), ``explanation`` (where a text leaves a language, and what was expected there).
"""
