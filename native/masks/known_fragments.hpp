// The fragments that one automaton uses: by expression and, for closed expressions, shared with all automata over its
// vocabulary (FragmentCache).
//
// Threads that compute masks share them. The lock is held for look-ups, and not while a fragment is built: a thread
// that needs the same fragment meanwhile waits for it (threads/in_progress.hpp), others continue. Results are kept and
// never move, so references to them are valid as long as this object lives.
#pragma once

#include <map>
#include <tuple>

#include "expression_forms/canonical_keys.hpp"
#include "masks/fragment_builder.hpp"
#include "threads/in_progress.hpp"
#include "walks/plain_walk.hpp"

namespace tokenfst {

class KnownFragments {
 public:
  KnownFragments(ByteAutomaton& bytes, const Vocabulary& vocabulary) : bytes_(bytes), vocabulary_(vocabulary), loops_(bytes) {}

  size_t memory() const { return bytes_held_.load(std::memory_order_relaxed) + loops_.memory(); }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return known_.size();
  }
  SelfLoops& loops() { return loops_; }

  // The fragment that begins at the node `top` of the vocabulary's trie; null if it is not known.
  std::shared_ptr<const Fragment> find(const Split& at, uint32_t top) { return entry(at, top).second; }
  // The same; the fragment is built if it is not known. Not null, but perhaps not usable.
  std::shared_ptr<const Fragment> make(const Split& at, uint32_t top) {
    const auto [known, found_before] = entry(at, top);
    const auto serves = [&](const std::shared_ptr<const Fragment>& found) { return found && (found->is_settled() || at.open); };
    if (serves(found_before)) return found_before;
    const InProgress::Scope making(known->making);
    if (auto fragment = entry(at, top).second; serves(fragment)) return fragment;
    const std::string key = key_of(at, top);
    const std::shared_ptr<const Fragment> built = build(at, top);
    bytes_held_ += built->memory();
    if (!key.empty()) vocabulary_.fragments().insert(key, built);
    const std::lock_guard lock(mutex_);
    return known->fragment = built;
  }
  // Whether the fragment is usable and serves all automata over the vocabulary; it is built if it is not known.
  bool serves_all(const Split& at, uint32_t top) { return !key_of(at, top).empty() && make(at, top)->usable; }
  // Whether the fragment is known at the beginning of tokens, to all automata over the vocabulary.
  bool is_shared(const Split& at) {
    const auto known = find(at, 0);
    if (!known || !known->usable) return false;
    return bytes_.expressions().with_arena([&](const Arena& arena) { return !key_of(arena, at.fragment).empty(); });
  }
  // The tokens whose bytes are a word of `text`; usable if there are any.
  std::shared_ptr<const Fragment> class_of(NodeId text) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = classes_.find(text); known != classes_.end()) return known->second;
    }
    std::shared_ptr<const Fragment> slot;
    const auto [begun, key] =
        bytes_.expressions().with_arena([&](Arena& arena) { return std::pair(arena.token(text, Kind::Begun), key_of(arena, text)); });
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
      trie.walk(walk, Config{bytes_.expressions().intern(begun)}, path, take, [](uint32_t) {});
      made->row = TokenRow(std::move(row));
      slot = std::move(made);
      if (!key.empty()) vocabulary_.fragments().insert(key + "token", slot);
    }
    const std::lock_guard lock(mutex_);
    const auto [known, fresh] = classes_.emplace(text, std::move(slot));
    if (fresh) bytes_held_ += known->second->memory();
    return known->second;
  }

 private:
  struct Known {
    std::shared_ptr<const Fragment> fragment;  // null: not known
    InProgress making;
  };
  using Slot = std::tuple<uint64_t, NodeId, uint32_t>;

  // The entry of a fragment, and the fragment as it is now.
  std::pair<Known*, std::shared_ptr<const Fragment>> entry(const Split& at, uint32_t top) {
    const Slot slot = slot_of(at, top);
    {
      const std::lock_guard lock(mutex_);
      if (auto it = known_.find(slot); it != known_.end()) return {&it->second, it->second.fragment};
    }
    const std::string key = key_of(at, top);
    std::shared_ptr<const Fragment> found = key.empty() ? nullptr : vocabulary_.fragments().find(key);
    const std::lock_guard lock(mutex_);
    const auto [it, fresh] = known_.try_emplace(slot);
    if (fresh && found) {
      bytes_held_ += found->memory();
      it->second.fragment = std::move(found);
    }
    return {&it->second, it->second.fragment};
  }
  std::shared_ptr<const Fragment> build(Split at, uint32_t top) {
    auto built = FragmentBuilder(bytes_, loops_, vocabulary_, at, top).build();
    if (at.least == kEmpty || !built->usable) return built;
    at.fragment = at.loop = at.least;
    auto least = FragmentBuilder(bytes_, loops_, vocabulary_, at, top).build();
    return least->usable && gives_the_same(*built, *least) ? least : std::make_shared<const Fragment>();
  }
  static Slot slot_of(const Split& at, uint32_t top) {
    return {uint64_t{at.fragment} << 3 | at.no_word_after << 2 | (at.widened != kUnbounded) << 1 | at.counted, at.least, top};
  }
  static std::string key_of(const Arena& arena, NodeId node) {
    static thread_local CanonicalKeys keys;  // a key does not depend on other keys or on the arena
    return keys.of(arena, node);
  }
  std::string key_of(const Split& at, uint32_t top) {
    return bytes_.expressions().with_arena([&](const Arena& arena) {
      std::string key = key_of(arena, at.fragment);
      if (key.empty()) return key;
      const uint32_t length = static_cast<uint32_t>(key.size());
      if (at.least != kEmpty) key += key_of(arena, at.least);
      key.append(reinterpret_cast<const char*>(&length), sizeof length);
      return key.append(1, at.counted                 ? 'c'
                           : at.widened != kUnbounded ? 'w'
                           : at.no_word_after         ? 'a'
                                                      : 'u')
          .append(reinterpret_cast<const char*>(&top), sizeof top);
    });
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  SelfLoops loops_;
  mutable Mutex mutex_;  // protects these two
  std::map<NodeId, std::shared_ptr<const Fragment>> classes_;
  std::map<Slot, Known> known_;
  std::atomic<size_t> bytes_held_{0};
};

}  // namespace tokenfst
