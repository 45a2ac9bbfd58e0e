// Masks where a limit of tokens meets strings that must differ.
#include "matching/limited_tokens.hpp"

namespace tokenfst {

LimitedTokens::LimitedTokens(TokenAutomaton& automaton, Stacks& stacks, Exclusion& exclusion, Completion& completion, uint32_t left,
                             std::vector<std::string>& offers)
    : automaton_(automaton), bytes_(automaton.bytes()), stacks_(stacks), exclusion_(exclusion), completion_(completion),
      walker_(bytes_, stacks), left_(left), offers_(offers) {}

bool LimitedTokens::remove_unsafe(Config from, uint32_t* mask) {
  const StacksTrial trial(stacks_);
  from_ = from;
  bool some = false;
  auto look_at = [&](uint32_t token) {
    time_limit_.step(256);
    if ((mask[token >> 5] >> (token & 31) & 1) && !fits(token)) some = true, mask[token >> 5] &= ~(1u << (token & 31));
  };
  const Reading at = exclusion_.reading();
  const bool matching = Exclusion::matches(at);
  if (matching) each_matching(look_at);
  // The number of quotation marks that a token needs to end a known string, or to open one that may become known.
  const size_t least = at.inside ? (matching ? 1 : 2) : (exclusion_.knows_any() ? 1 : 3);
  for (uint32_t token : automaton_.vocabulary().quoting(least)) look_at(token);
  return some;
}

bool LimitedTokens::remove(Config from, uint32_t* mask) {
  const StacksTrial trial(stacks_);
  from_ = from;
  std::vector<uint32_t> rest(mask, mask + automaton_.masks().words());
  if (bytes_.marks().facts.values) return remove_each(rest.data(), mask);
  if (exclusion_.reading().inside) walk_string(rest.data());
  each(rest.data(), [&](uint32_t token) { walk_token(token); });
  bool some = false;
  for (auto& [key, group] : groups_) {
    judge(key, group, [&](uint32_t token) { some = true, mask[token >> 5] &= ~(1u << (token & 31)); });
  }
  return some;
}

bool LimitedTokens::remove_matching(Config from, uint32_t* mask) {
  const StacksTrial trial(stacks_);
  from_ = from;
  if (bytes_.marks().facts.values) return automaton_.is_first(from) ? remove_each(mask, mask) : remove_near_known(mask);
  bool some = false;
  auto look_at = [&](uint32_t token) {
    time_limit_.step(256);
    if ((mask[token >> 5] >> (token & 31) & 1) && !fits(token)) some = true, mask[token >> 5] &= ~(1u << (token & 31));
  };
  if (automaton_.is_first(from)) {  // here tokens have other forms than in the vocabulary's lists
    for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
      if (automaton_.text_of(from, token).find('"') != std::string_view::npos) look_at(token);
    }
    return some;
  }
  if (Exclusion::matches(exclusion_.reading())) each_matching(look_at);
  for (uint32_t token : automaton_.vocabulary().quoting(exclusion_.reading().inside ? 2 : 1)) look_at(token);
  return some;
}

bool LimitedTokens::remove_near_known(uint32_t* mask) {
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
    time_limit_.step(256);
    if (!fits(token)) some = true, mask[token >> 5] &= ~(1u << (token & 31));
  }
  return some;
}

bool LimitedTokens::remove_each(const uint32_t* row, uint32_t* mask) {
  std::map<std::pair<Config, Reading>, bool> outside;
  bool some = false;
  each(row, [&](uint32_t token) {
    if (automaton_.vocabulary().is_eos(token)) return;
    time_limit_.step(16);
    const ExclusionTrial trial(exclusion_);
    const Config end = automaton_.advance(from_, token, stacks_, &exclusion_);
    Reading at = exclusion_.reading();
    bool fitting = false;
    if (is_dead(end) || at.scope != 0) {
      time_limit_.step(256);
      fitting = fits_after(end);
    } else {
      at.begin = 0;
      const auto [known, is_new] = outside.try_emplace({end, at}, false);
      if (is_new) known->second = fits_after(end);
      fitting = known->second;
    }
    if (!fitting) some = true, mask[token >> 5] &= ~(1u << (token & 31));
  });
  return some;
}

std::vector<uint32_t>* LimitedTokens::group(Config end, Reading reading, std::string_view token) {
  const bool open = reading.inside && reading.sibling;
  const bool alone = (open && (reading.match || reading.letters.phase != Unescaper::kPlain)) || token.find_first_of("{}[]") != token.npos;
  const size_t last = token.rfind('"');
  reading.begin = 0;
  return &groups_[{end, reading, alone ? token : token.substr(0, last == token.npos ? 0 : last + 1)}];
}

void LimitedTokens::walk_string(uint32_t* rest) {
  const Trie& trie = automaton_.vocabulary().trie();
  std::vector<Place> path{{from_, exclusion_.reading()}};
  for (uint32_t i = 1; i < trie.node(0).end;) {
    time_limit_.step();
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
    // Letters that no known string continues with change nothing, so nor do the tokens below that consist of such letters.
    const bool plain = at.reading.match == 0 && at.reading.letters.phase == Unescaper::kPlain && !at.reading.letters.high;
    const bool whole =
        plain && (automaton_.vocabulary().groups()[i] & kSpecialInStrings) == 0 && automaton_.stays_below(i, at.config.state);
    const uint32_t after = whole ? node.end : i + 1;
    for (uint32_t k = node.first; k < trie.node(after).first; ++k) {
      const uint32_t token = trie.string_at(k);
      uint32_t& word = rest[token >> 5];
      if (!(word >> (token & 31) & 1)) continue;
      word &= ~(1u << (token & 31));
      if (alone || !at.group)
        at.group =
            &groups_[{walker_.boundary(at.config), at.reading, alone ? automaton_.vocabulary().tokens()[token] : std::string_view()}];
      at.group->push_back(token);
    }
    if (!whole) path.push_back(at);
    i = after;
  }
}

void LimitedTokens::walk_token(uint32_t token) {
  if (automaton_.vocabulary().is_eos(token)) return;
  time_limit_.step(16);
  const ExclusionTrial reading(exclusion_);
  const Config end = automaton_.advance(from_, token, stacks_, &exclusion_);
  const std::string_view text = automaton_.text_of(from_, token);
  group(end, exclusion_.reading(), text)->push_back(token);
}

std::set<std::string> LimitedTokens::endings_that_meet(const Key& key, std::string_view completion) const {
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

bool LimitedTokens::fits(uint32_t token) {
  const ExclusionTrial reading(exclusion_);
  return fits_after(automaton_.advance(from_, token, stacks_, &exclusion_));
}

std::optional<std::string> LimitedTokens::look(Config end) {
  if (is_dead(end) || automaton_.distance(end, stacks_) > left_) return std::nullopt;
  // A completion after another token often fits here too, possibly without its first bytes.
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

}  // namespace tokenfst
