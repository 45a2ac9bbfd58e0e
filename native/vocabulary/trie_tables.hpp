// Writes a trie's tables as bytes and reads them back, so that a file can hold them and processes can share the file's
// pages.
//
// Format: two numbers of 8 bytes (how many nodes and how many strings there are), then the nodes, the children, the
// strings and the children's bytes, as they lie in memory, in the machine's own byte order. Tables of a machine with
// another byte order are refused like all wrong tables, because Trie::over compares everything with the strings. Cost:
// one copy for writing, none for reading.
#pragma once

#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "vocabulary/trie.hpp"

namespace tokenfst {

static_assert(sizeof(TrieNode) == 16 && sizeof(TrieChild) == 16);

// The tables of a trie as bytes.
std::string trie_bytes(const Trie& trie);

// Finds the tables in `bytes`. None if the size does not match the numbers, or if the numbers are not aligned in
// memory.
std::optional<Trie::Tables> tables_in(std::span<const uint8_t> bytes);

}  // namespace tokenfst
