// How a text can be completed where strings must differ from each other, so that a budget of tokens can be kept.
//
// Distances (token_automaton.hpp) know nothing of what is excluded: a shortest completion may end a name as one that is
// known. So a completion is looked for, byte by byte: best first by its length and what is missing, each configuration and
// reading once. Its text is then cut into the fewest tokens. What is found is a way to go, hence an upper bound; the least
// number may be smaller. A completion found for one sequence mostly serves others in the same configuration: it is run
// before a new one is looked for. The one that let a token pass is kept as the matcher's plan, and its next token always
// passes too: what was promised once is not lost by a worse bound later.
//
// The search goes through a tree of texts. What is excluded is read along one way in it: from one place to the next it is taken
// back to where their ways part, and goes on from there. Most next places follow the last one, so a completion costs about 20
// microseconds for each of its bytes, however long it is, and it is looked for only near the end of a budget. Further
// off (`plenty`), a shortest text is completion enough: it has a string for every three bytes at most, and each can be
// replaced by one that differs from all known ones and is at most so many bytes longer (`Room`). Behind a prefix with few
// ends, and where a finite set may be used up, that is not so; then a completion is always looked for. Of items of any kind no
// length is known; but a shortest text begins none that is not due where no array asks for two (`Room::near`), so it
// completes every text in which no known item has a say any more.
//
// At the start of a text tokens may have other forms, so a text that bytes allow need not be one that a token begins, and lengths
// in bytes bound no number of tokens. Where what is found cannot be cut there, what the tokens that may come first lead to is completed.
#pragma once

#include <map>
#include <queue>

#include "token_automata/token_automaton.hpp"

namespace tokenfst {

class Completion {
 public:
  // Completions that were found, by where they begin. Those of other sequences are tried before use: a configuration's stack
  // may have been another one.
  using Known = std::map<Config, std::vector<std::string>>;

  Completion(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion, Known& known)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion), known_(known), walker_(bytes_, stacks) {}

  // Whether so many tokens are surely enough where the exclusion is `at` this reading.
  bool plenty(Config config, const Reading& at, uint32_t left) {
    const Room& room = bytes_.marks().room;
    if (room.values ? exclusion_.has_say() : room.thin && Exclusion::matches(at)) return false;
    if (automaton_.is_first(config)) return left > 0 && all_fit(config, at, left - 1) && automaton_.spellable(config, stacks_);
    return enough(automaton_.most_bytes_behind(config, stacks_), at.finished, left) ||  // of the text as it is, too
           enough(automaton_.most_bytes_left(config, stacks_), at.finished, left);
  }
  // The same behind any token that may come next. Takes no heed of strings that a token leaves open, and that can become known ones.
  bool all_fit(Config from, const Reading& at, uint32_t left) {
    const Vocabulary& vocabulary = automaton_.vocabulary();
    if (automaton_.is_first(from) && vocabulary.start_absorbs()) return false;  // tokens may lead to where they began
    const uint32_t finished = at.finished + static_cast<uint32_t>(vocabulary.most_quotes() / 2 + 1);
    return enough(automaton_.most_bytes_behind(from, stacks_), finished, left) ||
           enough(automaton_.worst_bytes(from, stacks_), finished, left);
  }
  // The same of a completion of so many bytes that knows nothing of what is excluded.
  bool enough(uint32_t bytes, uint32_t finished, uint32_t left) const {
    const Room& room = bytes_.marks().room;
    const uint64_t strings = uint64_t{bytes} / 3 + 2, known = finished + strings;
    const uint64_t longer = known < Room::kNear ? room.near : known < Room::kFar ? room.far : kUnbounded;
    return known < room.fewest && bytes + strings * longer <= left;
  }
  // Whether a text completes a configuration in so many tokens.
  bool fits(Config config, const std::string& text, uint32_t left) {
    return runs(config, text) && spelled_within(text, left, automaton_.is_first(config));
  }

  // A completion, in at most so many tokens, from a configuration that the exclusion is at; none where none is found.
  std::optional<std::string> within(Config config, uint32_t left) {
    if (automaton_.accepting(config)) return "";
    const bool first = automaton_.is_first(config);
    std::vector<std::string>& known = known_[config];
    size_t longer = 0;
    for (const std::string& text : known) {
      if (!runs(config, text)) continue;
      if (spelled_within(text, left, first)) return text;
      if (++longer == kMostLonger) return std::nullopt;
    }
    std::optional<std::string> text = find(config);
    if (text && first && cut(*text, first).empty()) text = behind_first(config, left);
    if (!text) return std::nullopt;
    if (known.size() >= kMostKnown) known.clear();
    known.push_back(*text);
    return spelled_within(*text, left, first) ? text : std::nullopt;
  }
  // The tokens of a completion; kUnreachable where none is found.
  uint32_t length(Config config) {
    const std::optional<std::string> text = within(config, kUnreachable - 1);
    return text ? static_cast<uint32_t>(cut(*text, automaton_.is_first(config)).size()) : kUnreachable;
  }

  // Whether a text is spelled in so many tokens, at the start of all text (`first`) or later: no later form spells less than a byte.
  bool spelled_within(std::string_view text, uint32_t left, bool first) const {
    if (text.empty() || (!first && text.size() <= left)) return true;
    if (!first && text.size() > left * uint64_t{automaton_.vocabulary().trie().max_depth()}) return false;
    const size_t tokens = cut(text, first).size();
    return tokens > 0 && tokens <= left;
  }
  // The fewest tokens that spell a text; none at the start of a text that no token's form there begins.
  std::vector<uint32_t> cut(std::string_view text, bool first) const {
    const Vocabulary& vocabulary = automaton_.vocabulary();
    std::vector<Piece> best(text.size() + 1);
    best[text.size()].least = 0;
    for (size_t at = text.size(); at-- > 0;) begin_piece(at == 0 && first ? vocabulary.initial_trie() : vocabulary.trie(), text, at, best);
    std::vector<uint32_t> tokens;
    if (best[0].least == kUnreachable) return tokens;
    for (size_t at = 0; at < text.size(); at += best[at].length) tokens.push_back(best[at].token);
    return tokens;
  }

 private:
  static constexpr size_t kMostTried = 16384, kMostKnown = 64, kMostLonger = 4, kMostFirst = 64;

  // What spells the rest of a text in the fewest tokens: the first of them.
  struct Piece {
    uint32_t least = kUnreachable, token = 0;
    size_t length = 0;
  };
  static void begin_piece(const Trie& trie, std::string_view text, size_t from, std::vector<Piece>& best) {
    uint32_t node = 0;
    for (size_t to = from; to < text.size(); ++to) {
      const std::span<const uint8_t> bytes = trie.child_bytes(node);
      const auto child = std::ranges::lower_bound(bytes, static_cast<uint8_t>(text[to]));
      if (child == bytes.end() || *child != static_cast<uint8_t>(text[to])) return;
      node = trie.children(node)[static_cast<size_t>(child - bytes.begin())].node;
      const uint32_t rest = best[to + 1].least;
      if (trie.node(node).first == trie.node(node + 1).first || rest == kUnreachable || rest + 1 >= best[from].least) continue;
      best[from] = {rest + 1, trie.string_at(trie.node(node).first), to + 1 - from};
    }
  }
  // A completion from the start of a text by what the tokens that may come first lead to; in at most so many tokens, if one is
  // found. O(bytes of the vocabulary), and what a few completions cost.
  std::optional<std::string> behind_first(Config start, uint32_t left) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Exclusion::Checkpoint before = exclusion_.checkpoint();
    std::vector<std::pair<uint32_t, uint32_t>> first;  // the tokens to the end, and the first token that leads there
    {
      const Exclusion::Hold hold(exclusion_);
      std::set<std::pair<Config, Reading>> seen;
      Pace pace(bytes_.budget().seconds, "the tokens that may come first");
      for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
        pace.step(16);
        if (automaton_.text_of(start, token).empty()) continue;
        const Config end = automaton_.advance(start, token, stacks_, &exclusion_);
        if (!is_dead(end) && exclusion_.escapes(bytes_, walker_, stacks_, end, exclusion_.reading()) &&
            seen.insert({end, exclusion_.place()}).second)
          first.emplace_back(automaton_.distance(end, stacks_), token);
        exclusion_.restore(before);
      }
    }
    std::ranges::sort(first);
    std::optional<std::string> found;
    for (size_t k = 0; k < std::min(first.size(), kMostFirst); ++k) {
      const uint32_t token = first[k].second;
      const Config end = automaton_.advance(start, token, stacks_, &exclusion_);
      if (std::optional<std::string> rest = find(end)) {
        std::string text = std::string(automaton_.text_of(start, token)) + *rest;
        if (spelled_within(text, left, true)) return text;
        if (!found) found = std::move(text);
      }
      exclusion_.restore(before);
    }
    return found;
  }

  // Of the tree of texts that are searched: what one byte behind another place leads to.
  struct Place {
    uint32_t before;
    uint32_t length;  // of its text
    Config config;
    char byte;
  };
  // A place that is yet to be looked at: those with the least length in all first, newer ones among equals.
  struct Next {
    size_t length;
    uint32_t place;
    bool operator<(const Next& other) const { return std::tie(other.length, place) < std::tie(length, other.place); }
  };
  // The way to the place that the exclusion is at, and what it was at each place on it.
  class Way {
   public:
    Way(const std::vector<Place>& places, Exclusion& exclusion) : places_(places), exclusion_(exclusion) {
      taken_.emplace_back(0, exclusion.checkpoint());
    }
    // Takes the exclusion to another place. O(what is not common to the ways there).
    template <class Read>
    void go_to(uint32_t place, Read&& read) {
      std::vector<uint32_t>& ahead = ahead_;
      for (ahead.clear(); !is_on(place); place = places_[place].before) ahead.push_back(place);
      taken_.erase(taken_.begin() + places_[place].length + 1, taken_.end());
      exclusion_.restore(taken_.back().second);
      for (; !ahead.empty(); ahead.pop_back()) {
        const Place& next = places_[ahead.back()];
        read(places_[next.before].config, next.byte);
        taken_.emplace_back(ahead.back(), exclusion_.checkpoint());
      }
    }
    const Exclusion::Checkpoint& here() const { return taken_.back().second; }

   private:
    bool is_on(uint32_t place) const {
      const uint32_t length = places_[place].length;
      return length < taken_.size() && taken_[length].first == place;
    }
    const std::vector<Place>& places_;
    Exclusion& exclusion_;
    std::vector<std::pair<uint32_t, Exclusion::Checkpoint>> taken_;
    std::vector<uint32_t> ahead_;
  };

  bool runs(Config config, const std::string& text) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config end = exclusion_.run(bytes_, walker_, config, text);
    return !is_dead(end) && automaton_.accepting(end);
  }

  // Bytes that may lead to different places: one of each class, and those that known strings go on with. Letters last,
  // and so first among equals. `plain` is filled with those where no known string has a say, which are the same everywhere.
  const std::vector<char>& ways(std::vector<char>& plain, std::vector<char>& own) const {
    const Reading& at = exclusion_.reading();
    if (!at.watch && !Exclusion::matches(at)) return plain.empty() ? plain = ways_of(false) : plain;
    return own = ways_of(at.watch || at.letters.phase != Unescaper::kPlain);
  }
  std::vector<char> ways_of(bool all) const {
    std::vector<bool> met(bytes_.num_classes());
    std::vector<char> found;
    for (int k = 255; k >= 0; --k) {
      const uint8_t byte = static_cast<uint8_t>((k + '{') % 256);
      if (all || exclusion_.goes_on(byte)) found.push_back(static_cast<char>(byte));
      else if (const uint32_t c = bytes_.classes()[byte]; !met[c]) met[c] = true, found.push_back(static_cast<char>(byte));
    }
    std::ranges::reverse(found);
    return found;
  }
  std::optional<std::string> find(Config start) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Exclusion::Hold hold(exclusion_);
    std::vector<Place> places{{0, 0, start, 0}};
    Way way(places, exclusion_);
    auto read = [&](Config from, char byte) {
      const char text[] = {byte};
      return exclusion_.run(bytes_, walker_, from, {text, 1});
    };
    std::priority_queue<Next> queue;
    std::set<std::pair<Config, Reading>> seen;
    std::vector<char> plain, own;
    Pace pace(bytes_.budget().seconds, "the search for a completion");
    queue.push({0, 0});
    for (size_t tried = 0; !queue.empty() && tried < kMostTried; ++tried) {
      pace.step(256);
      const uint32_t place = queue.top().place;
      queue.pop();
      way.go_to(place, read);
      const auto [before, length, from, last] = places[place];
      for (const char next : ways(plain, own)) {
        const Config to = read(from, next);
        if (!is_dead(to) && exclusion_.escapes(bytes_, walker_, stacks_, to, exclusion_.reading())) {
          if (automaton_.accepting(to)) return text_to(places, place) + next;
          if (seen.insert({to, exclusion_.place()}).second) {
            places.push_back({place, length + 1, to, next});
            queue.push({length + size_t{automaton_.bytes_left(to, stacks_)}, static_cast<uint32_t>(places.size() - 1)});
          }
        }
        exclusion_.restore(way.here());
      }
    }
    return std::nullopt;
  }
  static std::string text_to(const std::vector<Place>& places, uint32_t place) {
    std::string text;
    for (; places[place].length > 0; place = places[place].before) text += places[place].byte;
    std::ranges::reverse(text);
    return text;
  }

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
  Known& known_;
  Walker walker_;
};

}  // namespace tokenfst
