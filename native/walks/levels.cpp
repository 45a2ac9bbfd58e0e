// Levels: the tabulation of what a push-down automaton can reach.
#include "walks/levels.hpp"

namespace tokenfst {

Levels::Levels(ByteAutomaton& bytes) : bytes_(bytes), walker_(bytes, stacks_), deadline_(bytes.budget().seconds) {
  opaque_ = stacks_.push(kOpaque, kBottom);
  walker_.stop_at(opaque_);
  walker_.keep_log(log_);
  // A class of bytes is represented by a letter or another printable byte, if it has one.
  for (auto [first, last] : {std::pair{0, 255}, {33, 126}, {'A', 'Z'}, {'a', 'z'}}) {
    for (int byte = last; byte >= first; --byte) byte_of_[bytes.classes()[byte]] = static_cast<uint8_t>(byte);
  }
  if (bytes.start() == kDead || !bytes.is_pushdown()) return;
  levels_.emplace_back();
  ends_.emplace_back();
  reach(0, "", bytes.start());
  reach(0, "", bytes.inner_start());
  for (size_t reached = 0; !queue_.empty();) {
    const Event event = queue_.top();
    queue_.pop();
    // All later texts are at least as long as this one, so they do not matter if the known conflict is not longer.
    if (!conflicts_.empty() && std::exchange(reached, event.length) < event.length && conflict()->size() <= event.length) break;
    if (event.caller != kNone) go_on(levels_[event.place].callers[event.caller], ends_[event.place].found[event.end]);
    else if (!std::exchange(places_[event.place].done, true)) visit(event.place);
  }
  log_.close();
}

std::optional<std::string> Levels::conflict() const {
  if (conflicts_.empty()) return std::nullopt;
  const std::vector<std::string> entered = texts_to_levels();
  std::optional<std::string> least;
  for (auto& [level, text] : conflicts_) {
    std::string whole = entered[level] + text;
    if (!least || std::pair(whole.size(), whole) < std::pair(least->size(), *least)) least = whole;
  }
  return least;
}

void Levels::visit(uint32_t index) {
  const Place place = places_[index];
  for (auto [byte_class, byte] : byte_of_) {
    const std::string text = place.text + static_cast<char>(byte);
    for (State raw : after_marks(bytes_, bytes_.row(place.state)[byte_class])) {
      Config to = walker_.arrive({place.state, bytes_.stacks().count(place.state) ? below(place.level) : kBottom}, raw);
      if (walker_.blocked()) {
        end(place.level, {text, place.state, raw});
      } else {
        if (bytes_.stacks().effect(raw)) keep_outcome(raw, kNone, place.level, to);
        arrive(place.level, text, to);
      }
    }
  }
}

void Levels::arrive(uint32_t level, const std::string& text, Config to) {
  check();
  if (is_dead(to)) return;
  std::vector<uint32_t> frames;
  StackId node = to.stack;
  bool single = bytes_.stacks().count(to.state) <= 1;
  for (; single && node != below(level); node = stacks_.edges(node)[0].below) {
    single = stacks_.edges(node).size() == 1;
    frames.push_back(stacks_.edges(node)[0].frame);
  }
  if (!single) {
    conflicts_.emplace_back(level, text);
  } else if (bytes_.stacks().to_reveal(to.state) != kNone) {
    end(level, {text, to.state});
  } else if (frames.empty()) {
    reach(level, text, to.state);
  } else {
    enter(to.state, level, text, frames);
  }
}

void Levels::enter(State entry, uint32_t level, std::string text, const std::vector<uint32_t>& frames) {
  std::vector<uint32_t> above{entry};
  above.insert(above.end(), frames.begin(), frames.end());
  for (size_t k = frames.size(); k-- > 0; text.clear()) {
    above.pop_back();
    auto [known, fresh] = level_of_.try_emplace(above, static_cast<uint32_t>(levels_.size()));
    if (fresh) {
      levels_.emplace_back();
      ends_.emplace_back();
    }
    const uint32_t inner = known->second;
    call(inner, {level, text, frames[k]});
    if (fresh && k == 0) reach(inner, "", entry);
    level = inner;
  }
}

void Levels::call(uint32_t inner, Caller caller) {
  auto& callers = levels_[inner].callers;
  auto [same, fresh] = ends_[inner].callers.try_emplace({caller.level, caller.frame}, static_cast<uint32_t>(callers.size()));
  if (!fresh) {
    if (caller.text.size() < callers[same->second].text.size()) callers[same->second].text = caller.text;
    return;
  }
  count(caller.text, 1);
  callers.push_back(std::move(caller));
  for (uint32_t k = 0; k < ends_[inner].found.size(); ++k) meet(inner, same->second, k);
}

void Levels::end(uint32_t level, Return found) {
  auto& ends = ends_[level].found;
  auto [same, fresh] = ends_[level].known.try_emplace({found.state, found.again, found.frames}, static_cast<uint32_t>(ends.size()));
  if (!fresh) {
    if (found.text.size() < ends[same->second].text.size()) ends[same->second].text = found.text;
    return;
  }
  count(found.text, found.frames.size());
  ends.push_back(std::move(found));
  for (uint32_t k = 0; k < levels_[level].callers.size(); ++k) meet(level, k, same->second);
}

void Levels::meet(uint32_t level, uint32_t caller, uint32_t end) {
  check();
  queue_.push({levels_[level].callers[caller].text.size() + ends_[level].found[end].text.size(), level, caller, end});
}

void Levels::go_on(Caller caller, Return found) {  // NOLINT(performance-unnecessary-value-param)
  found.frames.push_back(caller.frame);
  StackId node = below(caller.level);
  for (size_t i = found.frames.size(); i-- > 0;) node = stacks_.push(found.frames[i], node);
  found.text = caller.text + found.text;
  const State looking = found.again == kDead ? found.state : found.again;
  if (found.frames.size() > 1) deeper_.insert({looking, PushDown::single_signature({found.frames[0], opaque_})});
  const uint32_t shown = PushDown::single_signature(stacks_.edges(node)[0]);
  Config to = found.again == kDead ? walker_.resume({found.state, node}) : walker_.arrive({found.state, node}, found.again);
  check();
  if (walker_.blocked()) return end(caller.level, std::move(found));
  if (found.frames.size() == 1) keep_outcome(looking, shown, caller.level, to);
  arrive(caller.level, found.text, to);
}

void Levels::keep_outcome(State target, uint32_t shown, uint32_t level, Config to) {
  if (is_dead(to) || bytes_.stacks().count(to.state) > 1) return;
  Chain chain{to.state, false, {}};
  if (bytes_.stacks().count(to.state) == 1) {
    for (StackId node = to.stack; node != below(level); node = stacks_.edges(node)[0].below) {
      if (stacks_.edges(node).size() != 1) return;
      chain.frames.push_back(stacks_.edges(node)[0].frame);
    }
    std::ranges::reverse(chain.frames);
    chain.keeps = level != 0;
  }
  outcomes_.try_emplace({target, shown}, std::move(chain));
}

void Levels::reach(uint32_t level, const std::string& text, State state) {
  auto [it, fresh] = place_of_.try_emplace({level, state}, static_cast<uint32_t>(places_.size()));
  if (fresh) {
    places_.push_back({level, state, text});
  } else if (Place& known = places_[it->second]; !known.done && text.size() < known.text.size()) {
    known.text = text;
  } else {
    return;
  }
  queue_.push({text.size(), it->second});
}

std::vector<std::string> Levels::texts_to_levels() const {
  std::vector<std::optional<std::string>> least(levels_.size());
  least[0] = "";
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t level = 1; level < levels_.size(); ++level) {
      for (const Caller& caller : levels_[level].callers) {
        if (!least[caller.level] || (least[level] && least[level]->size() <= least[caller.level]->size() + caller.text.size())) continue;
        least[level] = *least[caller.level] + caller.text;
        changed = true;
      }
    }
  }
  std::vector<std::string> found;
  found.reserve(least.size());
  for (auto& text : least) found.push_back(text.value_or(""));
  return found;
}

void Levels::count(const std::string& text, size_t frames) {
  ++kept_;
  held_ += text.size() + 8 * frames + sizeof(Return) + sizeof(Caller);
}

void Levels::check() {
  if (++steps_ % 64 != 0) return;
  const Budget& budget = bytes_.budget();
  const char* const where = "the configurations that can be reached";
  if (deadline_.expired()) throw BudgetExceeded("seconds", budget.seconds, where);
  if (places_.size() + kept_ > budget.states) throw BudgetExceeded("states", static_cast<double>(budget.states), where);
  if (held_ + queue_.size() * sizeof(Event) + stacks_.memory() + log_.memory() > budget.bytes)
    throw BudgetExceeded("bytes", static_cast<double>(budget.bytes), where);
}

}  // namespace tokenfst
