// The tokens that would repeat a known string.
#include "matching/excluded_tokens.hpp"

namespace tokenfst {

bool ExcludedTokens::remove(Config config, uint32_t* mask) {
  if (automaton_.is_first(config)) return remove_first(config, mask);
  if (bytes_.marks().facts.values) return remove_items(config, mask);
  bool some = false;
  if (Exclusion::matches(exclusion_.reading())) some = remove_endings(config, mask);
  // Other tokens are excluded only if they end two strings, or one that also begins in them, if strings are finished. In the
  // second case a comma or a bracket comes before it, unless a string may begin here. With `few_endings`, a token that only
  // begins a string may be excluded too.
  const Reading& at = exclusion_.reading();
  const DistinctFacts& facts = bytes_.marks().facts;
  const Vocabulary& vocabulary = automaton_.vocabulary();
  auto try_each = [&](std::span<const uint32_t> tokens) {
    for (uint32_t token : tokens) {
      if (has(mask, token) && !exclusion_.never_restricts(vocabulary.tokens()[token], facts) && !may_take(config, token))
        some = true, take(mask, token);
    }
  };
  const bool two = at.inside || !at.finished;
  try_each(two || at.sibling || facts.few_endings ? vocabulary.quoting((two ? 3 : 2) - (facts.few_endings ? 1 : 0))
                                                  : vocabulary.quoting_items());
  if (facts.fewest != kUnbounded && at.scope && at.finished + vocabulary.most_quotes() >= facts.fewest)
    try_each(vocabulary.separating(at.inside));
  return some;
}

bool ExcludedTokens::can_differ(Config config, const Reading& reading) {
  if (bytes_.marks().facts.values ? !exclusion_.restricts() : !Exclusion::may_restrict(reading, bytes_.marks().facts)) return true;
  Walker walker(bytes_, stacks_);
  return exclusion_.can_differ(bytes_, walker, stacks_, config, reading);
}

bool ExcludedTokens::remove_first(Config start, uint32_t* mask) {
  bool some = false;
  for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
    const std::string_view text = automaton_.text_of(start, token);
    if (has(mask, token) && text.find_first_of("\",") != text.npos && !may_take(start, token)) some = true, take(mask, token);
  }
  return some;
}

bool ExcludedTokens::remove_endings(Config start, uint32_t* mask) {
  const StacksTrial trial(stacks_);
  const Trie& trie = automaton_.vocabulary().trie();
  Walker walker(bytes_, stacks_);
  bool some = false;
  auto each = [&](uint32_t first, uint32_t last, auto&& stays) {
    for (uint32_t k = trie.node(first).first; k < trie.node(last).first; ++k) {
      const uint32_t token = trie.string_at(k);
      if (has(mask, token) && !stays(token)) some = true, take(mask, token);
    }
  };
  std::vector<Place> pending{{0, start, exclusion_.reading()}};
  while (!pending.empty()) {
    const Place from = pending.back();
    pending.pop_back();
    const std::span<const uint8_t> bytes = trie.child_bytes(from.node);
    exclusion_.each_onward(from.reading, bytes, [&](size_t place) {
      const uint8_t byte = bytes[place];
      Place at = from;
      at.node = trie.children(from.node)[place].node;
      const Ending ending = exclusion_.follow(at.reading, byte);
      if (ending == Ending::New || (ending == Ending::None && at.reading.match == 0)) return;
      const State raw = bytes_.step(at.config.state, byte);
      if (ending == Ending::Known) {
        const bool over = raw == kDead || (bytes_.marks().is_marked(raw) && bytes_.marks().passed(raw, false) == kDead);
        const uint32_t after = trie.node(at.node).end;
        if (over) each(at.node, after, [](uint32_t) { return false; });
        else if (bytes_.marks().is_marked(raw)) each(at.node, after, [&](uint32_t token) { return may_take(start, token); });
        return;
      }
      at.config = raw == kDead ? Config{} : walker.arrive(at.config, raw);
      if (is_dead(at.config)) return;
      each(at.node, at.node + 1, [&](uint32_t) { return can_differ(at.config, at.reading); });
      pending.push_back(at);
    });
  }
  return some;
}

bool ExcludedTokens::remove_items(Config start, uint32_t* mask) {
  const StacksTrial trial(stacks_);
  const ExclusionTrial reading(exclusion_);
  const Vocabulary& vocabulary = automaton_.vocabulary();
  const Trie& trie = vocabulary.trie();
  bool some = false;
  for (const uint32_t token : vocabulary.separating(exclusion_.reading().inside)) {
    if (has(mask, token) && !exclusion_.begins_no_second_item(vocabulary.tokens()[token]) && !may_take(start, token))
      some = true, take(mask, token);
  }
  auto take_from = [&](uint32_t first, uint32_t last) {
    for (uint32_t k = trie.node(first).first; k < trie.node(last).first; ++k) {
      if (const uint32_t token = trie.string_at(k); has(mask, token)) some = true, take(mask, token);
    }
  };
  along_known(
      start, [&](uint32_t node) { take_from(node, trie.node(node).end); },
      [&](uint32_t node, Config to) {
        if (exclusion_.restricts() && !can_differ(to, exclusion_.reading())) take_from(node, node + 1);
      });
  return some;
}

bool ExcludedTokens::may_take(Config config, uint32_t token) {
  const StacksTrial trial(stacks_);
  const ExclusionTrial reading(exclusion_);
  const Config end = automaton_.advance(config, token, stacks_, &exclusion_);
  return !is_dead(end) && can_differ(end, exclusion_.reading());
}

}  // namespace tokenfst
