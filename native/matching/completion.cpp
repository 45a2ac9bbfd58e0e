// The search for a completion within a limit.
#include "matching/completion.hpp"

namespace tokenfst {

bool Completion::plenty(Config config, const Reading& at, uint32_t left) {
  const DistinctFacts& facts = bytes_.marks().facts;
  if (facts.values ? exclusion_.restricts() : facts.few_endings && Exclusion::matches(at)) return false;
  if (automaton_.is_first(config)) return left > 0 && all_fit(config, at, left - 1) && automaton_.spellable(config, stacks_);
  // A token of one byte leads to what is missing after any token.
  return enough(plus(automaton_.known_most_bytes_after(config, stacks_), 1), at.finished, left) ||
         enough(automaton_.most_bytes_left(config, stacks_), at.finished, left);
}

bool Completion::all_fit(Config from, const Reading& at, uint32_t left) {
  const Vocabulary& vocabulary = automaton_.vocabulary();
  if (automaton_.is_first(from) && vocabulary.start_absorbs()) return false;  // tokens may lead back to the start
  const uint32_t finished = at.finished + static_cast<uint32_t>(vocabulary.most_quotes() / 2 + 1);
  return enough(automaton_.most_bytes_after(from, stacks_), finished, left) ||
         enough(automaton_.worst_bytes(from, stacks_), finished, left);
}

bool Completion::enough(uint32_t bytes, uint32_t finished, uint32_t left) const {
  const DistinctFacts& facts = bytes_.marks().facts;
  const uint64_t strings = uint64_t{bytes} / 3 + 2, known = finished + strings;
  const uint64_t longer = known < DistinctFacts::kFewValues    ? facts.few_bytes
                          : known < DistinctFacts::kManyValues ? facts.many_bytes
                                                               : kUnbounded;
  return known < facts.fewest && bytes + strings * longer <= left;
}

std::optional<std::string> Completion::within(Config config, uint32_t left) {
  if (automaton_.accepting(config)) return "";
  return surely(config, left) ? automaton_.safe_text(config) : searched(config, left);
}

uint32_t Completion::length(Config config) {
  if (automaton_.accepting(config)) return 0;
  const std::optional<std::string> text = searched(config, kUnreachable - 1);
  const uint32_t found = text ? static_cast<uint32_t>(cut(*text, automaton_.is_first(config)).size()) : kUnreachable;
  return surely(config, found) ? automaton_.safe_tokens(config) : found;
}

bool Completion::spelled_within(std::string_view text, uint32_t left, bool first) const {
  if (text.empty() || (!first && text.size() <= left)) return true;
  if (!first && text.size() > left * uint64_t{automaton_.vocabulary().trie().max_depth()}) return false;
  const size_t tokens = cut(text, first).size();
  return tokens > 0 && tokens <= left;
}

std::optional<std::string> Completion::searched(Config config, uint32_t left) {
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

std::optional<std::string> Completion::behind_first(Config start, uint32_t left) {
  const StacksTrial trial(stacks_);
  const ExclusionTrial reading(exclusion_);
  const Exclusion::Checkpoint before = exclusion_.checkpoint();
  std::vector<std::pair<uint32_t, uint32_t>> first;  // the number of tokens to the end, and the first token
  {
    const Exclusion::PinnedNumbers hold(exclusion_);
    std::set<std::pair<Config, Reading>> seen;
    TimeLimit time_limit(bytes_.budget().seconds, "the tokens that may come first");
    for (uint32_t token = 0; token < automaton_.vocabulary().size(); ++token) {
      time_limit.step(16);
      if (automaton_.text_of(start, token).empty()) continue;
      const Config end = automaton_.advance(start, token, stacks_, &exclusion_);
      if (!is_dead(end) && exclusion_.can_differ(bytes_, walker_, stacks_, end, exclusion_.reading()) &&
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

bool Completion::runs(Config config, const std::string& text) {
  const StacksTrial trial(stacks_);
  const ExclusionTrial reading(exclusion_);
  const Config end = exclusion_.run(bytes_, walker_, config, text);
  return !is_dead(end) && automaton_.accepting(end);
}

const std::vector<char>& Completion::ways(std::vector<char>& plain, std::vector<char>& own) const {
  const Reading& at = exclusion_.reading();
  if (!at.watch && !Exclusion::matches(at)) return plain.empty() ? plain = ways_of(false) : plain;
  return own = ways_of(at.watch || at.letters.phase != Unescaper::kPlain);
}

std::vector<char> Completion::ways_of(bool all) const {
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

std::optional<std::string> Completion::find(Config start) {
  const StacksTrial trial(stacks_);
  const ExclusionTrial reading(exclusion_);
  const Exclusion::PinnedNumbers hold(exclusion_);
  std::vector<SearchedPlace> places{{0, 0, start, 0}};
  ExclusionPath way(places, exclusion_);
  auto read = [&](Config from, char byte) {
    const char text[] = {byte};
    return exclusion_.run(bytes_, walker_, from, {text, 1});
  };
  std::priority_queue<Next> queue;
  std::set<std::pair<Config, Reading>> seen;
  std::vector<char> plain, own;
  TimeLimit time_limit(bytes_.budget().seconds, "the search for a completion");
  queue.push({0, 0});
  const uint32_t least = automaton_.bytes_left(start, stacks_);
  const size_t most = kMostTried + (least <= kLongest ? least : 0);  // a text takes a place for each of its bytes
  for (size_t tried = 0; !queue.empty() && tried < most; ++tried) {
    time_limit.step(256);
    const uint32_t place = queue.top().place;
    queue.pop();
    way.go_to(place, read);
    const auto [before, length, from, last] = places[place];
    for (const char next : ways(plain, own)) {
      const Config to = read(from, next);
      if (!is_dead(to) && exclusion_.can_differ(bytes_, walker_, stacks_, to, exclusion_.reading())) {
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

}  // namespace tokenfst
