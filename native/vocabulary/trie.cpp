// Tries of the tokens' bytes: how they and their quotients are built and read.
#include "vocabulary/vocabulary.hpp"
#include "vocabulary/trie_tables.hpp"

namespace tokenfst {

Trie::Trie(std::vector<TrieNode> nodes, std::vector<uint32_t> order) {
  std::vector<uint32_t> path;
  for (uint32_t index = 0; index <= nodes.size(); ++index) {
    const size_t depth = index == nodes.size() ? 0 : nodes[index].depth;
    for (; path.size() > depth; path.pop_back()) nodes[path.back()].end = index;
    path.push_back(index);
    max_depth_ = std::max(max_depth_, depth);
  }
  finish(std::move(nodes), std::move(order));
}

void Trie::list_children() {
  const uint32_t count = static_cast<uint32_t>(num_nodes());
  children_.reserve(count);
  child_bytes_.reserve(count);
  for (uint32_t index = 0; index < count; ++index) {
    nodes_[index].child = static_cast<uint32_t>(children_.size());
    for (uint32_t child = index + 1; child < nodes_[index].end; child = nodes_[child].end) {
      const uint32_t strings = nodes_[child + 1].first - nodes_[child].first;
      children_.push_back({child, 0, strings ? order_[nodes_[child].first] : 0, 0, static_cast<uint8_t>(std::min(strings, 255u))});
      child_bytes_.push_back(nodes_[child].byte);
    }
  }
  nodes_[count].child = static_cast<uint32_t>(children_.size());
  tables_.children = children_, tables_.child_bytes = child_bytes_;
  for (uint32_t k = static_cast<uint32_t>(children_.size()); k-- > 0;) {
    TrieChild& at = children_[k];
    at.child = nodes_[at.node].child;
    at.children = static_cast<uint16_t>(nodes_[at.node + 1].child - at.child);
  }
  for (uint32_t index = count; index-- > 0;) {
    for (uint32_t k = nodes_[index].child; k < nodes_[index + 1].child; ++k) children_[k].by_letters = by_letters(children_[k].node);
  }
  letters_of_root_ = by_letters(0);
}

uint8_t Trie::by_letters(uint32_t index) const {
  uint32_t found = 0;
  for (uint32_t k = tables_.nodes[index].child; k < tables_.nodes[index + 1].child; ++k) {
    if (tables_.child_bytes[k] >= 'a' && tables_.child_bytes[k] <= 'z') found += 1 + tables_.children[k].by_letters;
  }
  return static_cast<uint8_t>(std::min(found, 255u));
}

CoarseTrie::CoarseTrie(const Trie& finer, const std::vector<ByteGroups>& groups, const ByteGrouping& grouping) : grouping_(grouping) {
  struct Pending {
    uint16_t depth;
    uint8_t byte;
    size_t first;  // index of the first of its members in `waiting`; they are the last there
  };
  std::vector<Pending> pending{{0, 0, 0}};
  std::vector<uint32_t> waiting{0}, strings;
  std::vector<TrieNode> nodes;
  std::array<std::vector<uint32_t>, ByteGrouping::kMost> children;
  members_.reserve(finer.num_nodes());
  while (!pending.empty()) {
    const Pending at = pending.back();
    pending.pop_back();
    nodes.push_back({0, static_cast<uint32_t>(strings.size()), 0, at.depth, at.byte});
    const size_t first = members_.size();
    member_first_.push_back(static_cast<uint32_t>(first));
    members_.insert(members_.end(), waiting.data() + at.first, waiting.data() + waiting.size());
    waiting.resize(at.first);
    ByteGroups below = 0;
    for (uint32_t member : std::span(members_).subspan(first)) {
      below |= groups[member];
      for (uint32_t k = finer.node(member).first; k < finer.node(member + 1).first; ++k) strings.push_back(finer.string_at(k));
      const std::span<const uint8_t> bytes = finer.child_bytes(member);
      for (size_t k = 0; k < bytes.size(); ++k) children[grouping.group[bytes[k]]].push_back(finer.children(member)[k].node);
    }
    groups_.push_back(below);
    for (size_t k = grouping.count; k-- > 0;) {
      if (children[k].empty()) continue;
      pending.push_back({static_cast<uint16_t>(at.depth + 1), grouping.least[k], waiting.size()});
      waiting.insert(waiting.end(), children[k].begin(), children[k].end());
      children[k].clear();
    }
  }
  member_first_.push_back(static_cast<uint32_t>(members_.size()));
  trie_ = Trie(std::move(nodes), std::move(strings));
}

std::string trie_bytes(const Trie& trie) {
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

std::optional<Trie::Tables> tables_in(std::span<const uint8_t> bytes) {
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
