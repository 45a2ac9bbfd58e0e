// Completions that no excluded string can forbid (exclusion/exclusion.hpp): for limits of new tokens where strings must
// differ.
//
// A completion is safe if it passes no mark Fresh, so whatever strings are known, none of them restricts it. One mark
// may be passed: that of the first quotation mark. If the state lies inside a string, this quotation mark ends the
// string, so the text is safe as long as no known string begins as this string does. If it lies outside, the first quotation mark opens a
// string, and no mark Fresh follows it. So one text for each state serves all sequences, and is searched for once:
// byte by byte, best-first by its length plus the least missing length. Backslashes are left out before the first
// quotation mark, so that it ends the string.
//
// Only for states without stacks, since other completions depend on the stack.
#pragma once

#include <queue>
#include <set>
#include <string>
#include <unordered_map>

#include "vocabulary/fewest_tokens.hpp"
#include "walks/walker.hpp"

namespace tokenfst {

// One thread at a time may use it.
class SafeTexts {
 public:
  struct Text {
    std::string bytes;
    uint32_t tokens = kUnreachable;  // the fewest that spell it; kUnreachable: no safe text was found
  };

  SafeTexts(ByteAutomaton& bytes, const Vocabulary& vocabulary) : bytes_(bytes), vocabulary_(vocabulary) {}

  // The safe text of a state, which must not be the start of the whole text. `bytes_left(config, stacks)`: the least
  // missing length, or an approximation. States beyond the first `kMost` get no text. The search tries at most kMostTried
  // places.
  template <class Length>
  const Text& of(State state, Length&& bytes_left) {
    static const Text none;
    const auto known = texts_.find(state);
    if (known != texts_.end()) return known->second;
    if (texts_.size() >= kMost) return none;
    Text found = find(state, bytes_left);
    memory_ += sizeof(Text) + 64 + found.bytes.capacity();
    return texts_.emplace(state, std::move(found)).first->second;
  }
  // In bytes. Any thread may call this.
  size_t memory() const { return memory_; }

 private:
  static constexpr size_t kMost = 20'000, kMostTried = 4096;

  // A place in the tree of searched texts: where one more byte leads from the place `before`.
  struct Place {
    uint32_t before, length;
    Config config;
    char byte;
    bool quoted;  // whether its text has a quotation mark
  };
  struct Next {
    size_t length;
    uint32_t place;
    bool operator<(const Next& other) const { return std::tie(other.length, place) < std::tie(length, other.place); }
  };

  template <class Length>
  Text find(State start, Length&& bytes_left) {
    if (bytes_.accepting(start)) return {"", 0};
    Stacks stacks;
    Walker walker(bytes_, stacks);
    const std::vector<uint8_t> ways = representatives();
    std::vector<Place> places{{0, 0, {start}, 0, false}};
    std::priority_queue<Next> queue;
    std::set<std::pair<Config, bool>> seen;
    TimeLimit time_limit(bytes_.budget().seconds, "the search for a completion");
    queue.push({0, 0});
    for (size_t tried = 0; !queue.empty() && tried < kMostTried; ++tried) {
      time_limit.step(64);
      const uint32_t place = queue.top().place;
      queue.pop();
      const Place from = places[place];
      for (const uint8_t byte : ways) {
        if (byte == '\\' && !from.quoted) continue;
        const Config to = step(walker, from, byte);
        if (is_dead(to)) continue;
        const bool quoted = from.quoted || byte == '"';
        if (bytes_.accepting(to.state)) {
          std::string text = text_to(places, place) + static_cast<char>(byte);
          const uint32_t tokens = static_cast<uint32_t>(spelled_by_fewest(vocabulary_, text, false).size());
          return {std::move(text), tokens};
        }
        if (!seen.insert({to, quoted}).second) continue;
        places.push_back({place, from.length + 1, to, static_cast<char>(byte), quoted});
        queue.push({from.length + 1 + size_t{bytes_left(to, stacks)}, static_cast<uint32_t>(places.size() - 1)});
      }
    }
    return {};
  }
  Config step(Walker& walker, const Place& from, uint8_t byte) {
    State raw = bytes_.step(from.config.state, byte);
    if (raw == kDead) return {};
    if (bytes_.marks().is_marked(raw)) raw = bytes_.marks().passed(raw, byte == '"' && !from.quoted);
    return walker.arrive(from.config, raw);
  }
  // One byte of each class, and both bytes that matter in strings. Letters last, and so first among equals.
  std::vector<uint8_t> representatives() const {
    std::vector<bool> met(bytes_.num_classes());
    std::vector<uint8_t> found;
    for (int k = 255; k >= 0; --k) {
      const uint8_t byte = static_cast<uint8_t>((k + '{') % 256);
      const bool own = byte == '"' || byte == '\\';
      if (!own && met[bytes_.classes()[byte]]) continue;
      if (!own) met[bytes_.classes()[byte]] = true;
      found.push_back(byte);
    }
    std::ranges::reverse(found);
    return found;
  }
  static std::string text_to(const std::vector<Place>& places, uint32_t place) {
    std::string text;
    for (; places[place].length > 0; place = places[place].before) text += places[place].byte;
    std::ranges::reverse(text);
    return text;
  }

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  std::unordered_map<State, Text> texts_;
  std::atomic<size_t> memory_{0};
};

}  // namespace tokenfst
