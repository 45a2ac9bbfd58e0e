// The tokens of a mask that a budget of tokens leaves where strings must differ: those behind which a completion fits.
//
// Most masks are made without a look: where the longest of the least completions behind any token leaves room for every
// string in it to become another one (`Completion::enough`), all tokens fit. Otherwise tokens are put into groups that
// have the same future: by where they lead, what is being read there, and the text of the token up to its last quotation
// mark, which is what they finish. Of a string that a token leaves open, what is read so far differs within a group, but if
// no known string begins so, it only matters where it becomes equal to a string of the completion: these tokens are
// looked at one by one. So the cost follows the number of groups, and one walk of the vocabulary inside of a string. Where
// there is room in any case but inside of a string that may yet become a known one, only tokens that stop in such are looked at;
// where items of any kind must differ, those behind which a known one has a say.
//
// The completions that were found are kept as offers: the token that is taken next passes for one of them.
#pragma once

#include "matching/completion.hpp"
#include "matching/excluded_tokens.hpp"

namespace tokenfst {

class BudgetedTokens {
 public:
  // `left`: how many tokens may follow the next one.
  BudgetedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion, Completion& completion, uint32_t left,
                 std::vector<std::string>& offers)
      : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion), completion_(completion),
        walker_(bytes_, stacks), left_(left), offers_(offers) {}

  // Whether all tokens of a configuration's mask surely fit, but for those that stop inside of a string that can become a known one.
  bool all_fit(Config from) { return completion_.all_fit(from, exclusion_.reading(), left_); }

  // Removes the others from the mask of a configuration where not all fit; whether there were any.
  bool remove(Config from, uint32_t* mask) {
    const StacksTrial trial(stacks_);
    from_ = from;
    std::vector<uint32_t> rest(mask, mask + automaton_.masks().words());
    if (bytes_.marks().room.values) return remove_each(rest.data(), mask);
    if (exclusion_.reading().inside) walk_string(rest.data());
    each(rest.data(), [&](uint32_t token) { walk_token(token); });
    bool some = false;
    for (auto& [key, group] : groups_) {
      judge(key, group, [&](uint32_t token) { some = true, mask[token >> 5] &= ~(1u << (token & 31)); });
    }
    return some;
  }
  // The same of those that stop inside of a string that can become a known one, where all others fit: of the string that is
  // being read, and of those that tokens begin.
  bool remove_matching(Config from, uint32_t* mask) {
    const StacksTrial trial(stacks_);
    from_ = from;
    if (bytes_.marks().room.values) return automaton_.is_first(from) ? remove_each(mask, mask) : remove_near_known(mask);
    bool some = false;
    auto look_at = [&](uint32_t token) {
      pace_.step(256);
      if ((mask[token >> 5] >> (token & 31) & 1) && !fits(token)) some = true, mask[token >> 5] &= ~(1u << (token & 31));
    };
    if (automaton_.is_first(from)) {  // where forms are others than those that the vocabulary lists
      for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
        if (automaton_.text_of(from, token).find('"') != std::string_view::npos) look_at(token);
      }
      return some;
    }
    if (Exclusion::matches(exclusion_.reading())) each_matching(look_at);
    for (uint32_t token : automaton_.vocabulary().quoting(exclusion_.reading().inside ? 2 : 1)) look_at(token);
    return some;
  }

 private:
  // The same where items of any kind must differ: those behind which a known item has a say or has ruled out a reading, and
  // those in which an item begins behind another.
  bool remove_near_known(uint32_t* mask) {
    const Vocabulary& vocabulary = automaton_.vocabulary();
    std::vector<uint32_t> unsure;
    auto note = [&](uint32_t token) {
      if (mask[token >> 5] >> (token & 31) & 1) unsure.push_back(token);
    };
    for (const uint32_t token : vocabulary.separating(exclusion_.reading().inside)) {
      if (!exclusion_.begins_no_second_item(vocabulary.tokens()[token])) note(token);
    }
    const Trie& trie = vocabulary.trie();
    ExcludedTokens(automaton_, stacks_, exclusion_)
        .along_known(
            from_, [](uint32_t) {},
            [&](uint32_t node, Config) {
              for (uint32_t k = trie.node(node).first; k < trie.node(node + 1).first; ++k) note(trie.string_at(k));
            });
    bool some = false;
    for (const uint32_t token : unsure) {
      pace_.step(256);
      if (!fits(token)) some = true, mask[token >> 5] &= ~(1u << (token & 31));
    }
    return some;
  }
  // One by one: where items of any kind must differ, what two tokens add to one makes two futures. Behind a token that leaves no
  // such array open nothing is known, so there the place is all that the future depends on.
  bool remove_each(const uint32_t* row, uint32_t* mask) {
    std::map<std::pair<Config, Reading>, bool> outside;
    bool some = false;
    each(row, [&](uint32_t token) {
      if (automaton_.vocabulary().is_eos(token)) return;
      pace_.step(16);
      const ExclusionTrial trial(exclusion_);
      const Config end = automaton_.advance(from_, token, stacks_, &exclusion_);
      Reading at = exclusion_.reading();
      bool fitting = false;
      if (is_dead(end) || at.scope != 0) {
        pace_.step(256);
        fitting = fits_behind(end);
      } else {
        at.begin = 0;
        const auto [known, is_new] = outside.try_emplace({end, at}, false);
        if (is_new) known->second = fits_behind(end);
        fitting = known->second;
      }
      if (!fitting) some = true, mask[token >> 5] &= ~(1u << (token & 31));
    });
    return some;
  }
  // Tokens with one future, but for what is read of the string that they stop in.
  struct Key {
    Config end;
    Reading reading;
    std::string_view text;  // of the token, as far as it matters
    auto operator<=>(const Key&) const = default;
  };
  struct Place {
    Config config;
    Reading reading;
    std::vector<uint32_t>* group = nullptr;
  };

  template <class F>
  void each(const uint32_t* row, F&& f) const {
    for (size_t word = 0; word < automaton_.masks().words(); ++word) {
      for (uint32_t bits = row[word]; bits; bits &= bits - 1) f(static_cast<uint32_t>(word * 32 + std::countr_zero(bits)));
    }
  }

  std::vector<uint32_t>* group(Config end, Reading reading, std::string_view token) {
    const bool open = reading.inside && reading.sibling;
    const bool alone = (open && (reading.match || reading.letters.phase != Unescaper::kPlain)) || token.find_first_of("{}[]") != token.npos;
    const size_t last = token.rfind('"');
    reading.begin = 0;
    return &groups_[{end, reading, alone ? token : token.substr(0, last == token.npos ? 0 : last + 1)}];
  }

  // Calls f(token) for those behind which the string that is being read is not over, and can become a known one. They lie along
  // the known strings.
  template <class F>
  void each_matching(F&& f) const {
    const Trie& trie = automaton_.vocabulary().trie();
    std::vector<std::pair<uint32_t, Reading>> pending{{0, exclusion_.reading()}};
    while (!pending.empty()) {
      const auto [node, at] = pending.back();
      pending.pop_back();
      const std::span<const uint8_t> bytes = trie.child_bytes(node);
      exclusion_.each_onward(at, bytes, [&](size_t place) {
        const TrieChild& child = trie.children(node)[place];
        Reading next = at;
        if (exclusion_.follow(next, bytes[place]) != Ending::None || !Exclusion::matches(next)) return;
        trie.each_string(child, f);
        pending.emplace_back(child.node, next);
      });
    }
  }
  // Inside of a string: the tokens that stay there, by one walk. The others stay in `rest`.
  void walk_string(uint32_t* rest) {
    const Trie& trie = automaton_.vocabulary().trie();
    std::vector<Place> path{{from_, exclusion_.reading()}};
    for (uint32_t i = 1; i < trie.node(0).end;) {
      pace_.step();
      const TrieNode& node = trie.node(i);
      path.resize(node.depth);
      Place at = path.back();
      const Ending ending = exclusion_.follow(at.reading, node.byte);
      const State raw = ending == Ending::None ? bytes_.step(at.config.state, node.byte) : kDead;
      at.config = raw == kDead ? Config{} : walker_.arrive(at.config, raw);
      if (is_dead(at.config)) {
        i = node.end;
        continue;
      }
      if (at.config != path.back().config || at.reading != path.back().reading) at.group = nullptr;
      const bool alone = at.reading.sibling && (at.reading.match || at.reading.letters.phase != Unescaper::kPlain);
      for (uint32_t k = node.first; k < trie.node(i + 1).first; ++k) {
        const uint32_t token = trie.string_at(k);
        uint32_t& word = rest[token >> 5];
        if (!(word >> (token & 31) & 1)) continue;
        word &= ~(1u << (token & 31));
        if (alone || !at.group)
          at.group =
              &groups_[{walker_.boundary(at.config), at.reading, alone ? automaton_.vocabulary().tokens()[token] : std::string_view()}];
        at.group->push_back(token);
      }
      path.push_back(at);
      ++i;
    }
  }
  void walk_token(uint32_t token) {
    if (automaton_.vocabulary().is_eos(token)) return;
    pace_.step(16);
    const ExclusionTrial reading(exclusion_);
    const Config end = automaton_.advance(from_, token, stacks_, &exclusion_);
    const std::string_view text = automaton_.text_of(from_, token);
    group(end, exclusion_.reading(), text)->push_back(token);
  }

  // Calls f with the tokens of a group behind which nothing fits.
  template <class F>
  void judge(const Key& key, const std::vector<uint32_t>& tokens, F&& f) {
    pace_.step(256);
    std::optional<std::string> text;
    bool plenty = false;
    for (size_t k = 0; k < std::min<size_t>(tokens.size(), 2) && !text && !plenty; ++k) {
      const ExclusionTrial reading(exclusion_);
      const Config end = automaton_.advance(from_, tokens[k], stacks_, &exclusion_);
      plenty = !is_dead(end) && completion_.plenty(end, exclusion_.reading(), left_);
      if (!plenty) text = look(end);
    }
    if (plenty) return;
    if (!text) {
      std::ranges::for_each(tokens, f);
      return;
    }
    if (tokens.size() == 1 || !key.reading.inside || !key.reading.sibling) return;
    const std::set<std::string> equal = endings_that_meet(key, *text);
    for (uint32_t token : tokens) {
      std::string_view tail = automaton_.text_of(from_, token).substr(key.text.size());
      const bool unsure = equal.contains(std::string(tail)) || (!equal.empty() && tail.find('\\') != tail.npos);
      if (unsure && !fits(token)) f(token);
    }
  }
  // What a token must add to the string that it stops in for that to end, by a completion, as a string behind it.
  std::set<std::string> endings_that_meet(const Key& key, std::string_view completion) const {
    const std::string before = key.text.empty() ? exclusion_.value_so_far() : "";
    std::string first, value;
    std::set<std::string> found;
    Unescaper letters;
    bool inside = true, own = true;
    for (const char sign : completion) {
      const uint8_t byte = static_cast<uint8_t>(sign);
      if (byte == '"' && (!inside || letters.phase == Unescaper::kPlain)) {
        if (inside && own) first = value;
        else if (inside && value.starts_with(before) && value.ends_with(first) && value.size() >= before.size() + first.size()) {
          found.insert(value.substr(before.size(), value.size() - before.size() - first.size()));
        }
        own = own && !inside;
        inside = !inside;
        value.clear();
      } else if (inside) {
        letters.feed(byte, [&](uint8_t letter) { value += static_cast<char>(letter); });
      }
    }
    return found;
  }
  bool fits(uint32_t token) {
    const ExclusionTrial reading(exclusion_);
    return fits_behind(automaton_.advance(from_, token, stacks_, &exclusion_));
  }
  // Whether a completion fits from where the exclusion is.
  bool fits_behind(Config end) { return !is_dead(end) && (completion_.plenty(end, exclusion_.reading(), left_) || look(end)); }
  // A completion that fits, from where the exclusion is.
  std::optional<std::string> look(Config end) {
    if (is_dead(end) || automaton_.distance(end, stacks_) > left_) return std::nullopt;
    // What completes the text behind another token often does so here, or but for the bytes that this one has more.
    for (size_t k = offers_.size(); k-- > 0 && k + kMostOffers >= offers_.size();) {
      for (size_t more = 0; more < std::min(kMostMore, offers_[k].size()); ++more) {
        std::string rest = offers_[k].substr(more);
        if (!completion_.fits(end, rest, left_)) continue;
        if (more) offers_.push_back(rest);
        return rest;
      }
    }
    std::optional<std::string> text = completion_.within(end, left_);
    if (text && std::ranges::find(offers_, *text) == offers_.end()) offers_.push_back(*text);
    return text;
  }

  static constexpr size_t kMostOffers = 3, kMostMore = 8;

  TokenAutomaton& automaton_;
  ByteAutomaton& bytes_;
  Stacks& stacks_;
  Exclusion& exclusion_;
  Completion& completion_;
  Walker walker_;
  const uint32_t left_;
  std::vector<std::string>& offers_;
  Pace pace_{bytes_.budget().seconds, "the tokens that a budget leaves"};
  Config from_;
  std::map<Key, std::vector<uint32_t>> groups_;
};

}  // namespace tokenfst
