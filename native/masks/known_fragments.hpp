// The fragments that one automaton has met: by expression, and where expressions are closed, shared with all automata over
// its vocabulary (FragmentCache).
#pragma once

#include <map>
#include <tuple>

#include "expressions/canonical_keys.hpp"
#include "masks/fragment_builder.hpp"
#include "walks/plain_walk.hpp"

namespace tokenfst {

class KnownFragments {
 public:
  KnownFragments(ByteAutomaton& bytes, const Vocabulary& vocabulary) : bytes_(bytes), vocabulary_(vocabulary), loops_(bytes) {}

  size_t memory() const { return bytes_held_ + loops_.memory() + keys_.memory(); }
  size_t size() const { return known_.size(); }
  SelfLoops& loops() { return loops_; }

  // The fragment that begins behind the node `top` of the vocabulary's trie; null where it is not known.
  std::shared_ptr<const Fragment> find(const Split& at, uint32_t top) { return entry(at, top).fragment; }
  // The same, built where it is not known.
  std::shared_ptr<const Fragment> make(const Split& at, uint32_t top) {
    auto& [fragment, key] = entry(at, top);
    if (!fragment || (fragment->crowded && !fragment->usable && !at.open)) {
      if (key.empty()) key = key_of(at, top);
      fragment = build(at, top);
      bytes_held_ += fragment->memory();
      if (!key.empty()) vocabulary_.fragments().insert(key, fragment);
      key = {};
    }
    return fragment;
  }
  // The tokens whose bytes are a word of `text`; usable where there are any.
  std::shared_ptr<const Fragment> class_of(NodeId text) {
    auto& slot = classes_[text];
    if (slot) return slot;
    const auto [begun, key] =
        bytes_.with_arena([&](Arena& arena) { return std::pair(arena.token(text, Kind::Begun), keys_.of(arena, text)); });
    if (!key.empty()) slot = vocabulary_.fragments().find(key + "token");
    if (!slot) {
      auto made = std::make_shared<Fragment>();
      std::vector<uint32_t> row((vocabulary_.size() + 31) / 32, 0);
      PlainWalk walk(bytes_);
      std::vector<Config> path;
      const Trie& trie = vocabulary_.trie();
      auto take = [&](uint32_t index, Config end) {
        if (trie.node(index).first == trie.node(index + 1).first || is_dead(walk.boundary(end))) return;
        made->usable = true;
        trie.each_string(index, [&](uint32_t token) { row[token >> 5] |= 1u << (token & 31); });
      };
      trie.walk(walk, Config{bytes_.intern(begun)}, path, take, [](uint32_t) {});
      made->row = TokenRow(std::move(row));
      slot = std::move(made);
      if (!key.empty()) vocabulary_.fragments().insert(key + "token", slot);
    }
    bytes_held_ += slot->memory();
    return slot;
  }

 private:
  struct Known {
    std::shared_ptr<const Fragment> fragment;  // null: not known
    std::string key = {};                      // under which it will be shared; empty where it is known, or never will
  };

  Known& entry(const Split& at, uint32_t top) {
    const Slot slot = slot_of(at, top);
    if (auto it = known_.find(slot); it != known_.end()) return it->second;
    Known found{nullptr, key_of(at, top)};
    if (!found.key.empty()) found.fragment = vocabulary_.fragments().find(found.key);
    if (found.fragment) found.key = {};
    Known& known = known_.emplace(slot, std::move(found)).first->second;
    if (known.fragment) bytes_held_ += known.fragment->memory();
    return known;
  }
  std::shared_ptr<const Fragment> build(Split at, uint32_t top) {
    auto built = FragmentBuilder(bytes_, loops_, vocabulary_, at, top).build();
    if (at.least == kEmpty || !built->usable) return built;
    at.fragment = at.loop = at.least;
    auto least = FragmentBuilder(bytes_, loops_, vocabulary_, at, top).build();
    return least->usable && gives_the_same(*built, *least) ? least : std::make_shared<const Fragment>();
  }
  using Slot = std::tuple<uint64_t, NodeId, uint32_t>;
  static Slot slot_of(const Split& at, uint32_t top) {
    return {uint64_t{at.fragment} << 2 | (at.widened != kUnbounded) << 1 | at.counted, at.least, top};
  }
  std::string key_of(const Split& at, uint32_t top) {
    return bytes_.with_arena([&](const Arena& arena) {
      std::string key = keys_.of(arena, at.fragment);
      if (key.empty()) return key;
      const uint32_t length = static_cast<uint32_t>(key.size());
      if (at.least != kEmpty) key += keys_.of(arena, at.least);
      key.append(reinterpret_cast<const char*>(&length), sizeof length);
      return key.append(1, at.counted ? 'c' : at.widened != kUnbounded ? 'w' : 'u').append(reinterpret_cast<const char*>(&top), sizeof top);
    });
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  SelfLoops loops_;
  std::map<NodeId, std::shared_ptr<const Fragment>> classes_;
  std::map<Slot, Known> known_;
  CanonicalKeys keys_;
  size_t bytes_held_ = 0;
};

}  // namespace tokenfst
