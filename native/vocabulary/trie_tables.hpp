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

inline std::string trie_bytes(const Trie& trie) {
  const Trie::Tables& tables = trie.tables();
  const uint64_t sizes[] = {tables.nodes.size(), tables.order.size()};
  std::string made(reinterpret_cast<const char*>(sizes), sizeof sizes);
  const size_t first = made.size();
  const auto append = [&](const auto& table) { made.append(reinterpret_cast<const char*>(table.data()), table.size_bytes()); };
  append(tables.nodes);
  // The padding byte is set to zero, so that equal tries have equal bytes.
  for (size_t k = 0; k < tables.nodes.size(); ++k) made[first + 16 * k + 15] = 0;
  append(tables.children), append(tables.order), append(tables.child_bytes);
  return made;
}

// Finds the tables in `bytes`. None if the size does not match the numbers, or if the numbers are not aligned in
// memory.
inline std::optional<Trie::Tables> tables_in(std::span<const uint8_t> bytes) {
  constexpr size_t kHead = 16;
  uint64_t sizes[2];
  if (bytes.size() < kHead || reinterpret_cast<uintptr_t>(bytes.data()) % alignof(TrieNode) != 0) return std::nullopt;
  std::memcpy(sizes, bytes.data(), kHead);
  const auto [nodes, strings] = sizes;
  if (nodes < 2 || nodes > UINT32_MAX || strings > UINT32_MAX) return std::nullopt;
  const size_t children = nodes - 2;
  if (bytes.size() != kHead + 16 * nodes + 16 * children + 4 * strings + children) return std::nullopt;
  const uint8_t* at = bytes.data() + kHead;
  const auto take = [&]<class T>(const T*, size_t count) {
    const std::span<const T> found(reinterpret_cast<const T*>(at), count);
    at += found.size_bytes();
    return found;
  };
  Trie::Tables found;
  found.nodes = take(static_cast<const TrieNode*>(nullptr), nodes);
  found.children = take(static_cast<const TrieChild*>(nullptr), children);
  found.order = take(static_cast<const uint32_t*>(nullptr), strings);
  found.child_bytes = take(static_cast<const uint8_t*>(nullptr), children);
  return found;
}

}  // namespace tokenfst
