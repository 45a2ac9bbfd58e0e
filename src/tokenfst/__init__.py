"""tokenfst: exact constrained decoding by composition of automata with tokenizers."""
