// Exclusion: what is done at a byte, and the searches for a string that differs.
#include "exclusion/exclusion.hpp"

namespace tokenfst {

std::string Exclusion::value_so_far() const {
  std::string value;
  each_letter([&](uint8_t letter) { value += static_cast<char>(letter); });
  return value;
}

uint64_t Exclusion::fingerprint() const {
  uint64_t hash =
      mix(uint64_t{now_.letters.unit} << 32 | uint64_t{now_.letters.high} << 16 | now_.letters.phase, now_.inside << 1 | now_.sibling);
  if (now_.inside && now_.sibling) hash = hash_of_text(hash, now_.begin);
  if (now_.scope && kept_) hash = hash_of_text(mix(hash, uint64_t{now_.scalar} << 1 | now_.due), 0);  // the text of every item
  return mix(hash, hash_of_known());
}

Reading Exclusion::place() const {
  Reading at = now_;
  at.begin = 0;
  if (!kept_ || now_.scope == 0) return at;
  const uint64_t hash = mix(mix(values_.hash_of(now_.watch), now_.inside && now_.match ? hash_of_value() : 0), hash_of_known());
  at.begin = static_cast<uint32_t>(hash), at.item = static_cast<uint32_t>(hash >> 32);
  at.scope = at.finished = 0;
  at.match = now_.match != 0, at.watch = now_.watch != 0;
  return at;
}

void Exclusion::restore(const Checkpoint& before) {
  strings_.restore(before.strings);
  values_.restore(before.values, [&](uint32_t scope, uint32_t known) { scopes_[scope].known = known; });
  now_ = before.reading;
  text_.resize(before.text);
  scopes_.resize(before.scopes);
}

Config Exclusion::run(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text) {
  for (unsigned char byte : text) {
    State raw = bytes.step(at.state, byte);
    if (raw == kDead) return {};
    const Ending ending = read(byte, bytes.marks().facts.values);
    if (bytes.marks().is_marked(raw)) raw = pass(bytes, raw, byte, ending);
    if (is_dead(at = walker.arrive(at, raw))) return at;
  }
  return at;
}

Config Exclusion::text_step(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text, State raw) {
  Ending ending = Ending::None;
  for (unsigned char byte : text) ending = read(byte, bytes.marks().facts.values);
  if (raw != kDead && bytes.marks().is_marked(raw)) raw = pass(bytes, raw, static_cast<uint8_t>(text.back()), ending);
  return walker.arrive(at, raw);
}

bool Exclusion::can_differ(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config, const Reading& reading) {
  if (bytes.marks().facts.values) return items_can_differ(bytes, walker, stacks, config);
  if (!may_restrict(reading, bytes.marks().facts)) return true;
  const StacksTrial trial(stacks);
  std::vector<std::pair<Config, Reading>> pending{{config, reading}};
  std::set<std::pair<Config, Reading>> seen;
  TimeLimit time_limit(bytes.budget().seconds, "the search for a string that differs from those before");
  while (!pending.empty()) {
    const auto [from, at] = pending.back();
    pending.pop_back();
    time_limit.step(256);
    for (int byte = 255; byte >= 0; --byte) {
      State raw = bytes.step(from.state, static_cast<uint8_t>(byte));
      if (raw == kDead) continue;
      Reading next = at;
      Ending ending = Ending::None;
      if (at.inside) ending = follow(next, static_cast<uint8_t>(byte));
      else if (byte == '"') begin(next);
      if (bytes.marks().is_marked(raw)) raw = bytes.marks().passed(raw, ending != Ending::Known);
      std::pair<Config, Reading> reached{walker.arrive(from, raw), next};
      if (is_dead(reached.first)) continue;
      const bool blank = byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
      if (ending != Ending::None || (next.inside ? next.match == 0 : !blank)) return true;
      if (seen.insert(reached).second) pending.push_back(reached);
    }
  }
  return false;
}

bool Exclusion::items_can_differ(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config) {
  if (!restricts()) return true;
  const StacksTrial trial(stacks);
  const Rollback back{*this, checkpoint()};
  const PinnedNumbers hold(*this);
  struct Place {
    Config config;
    Checkpoint at;
    int byte;  // the byte that was tried last
  };
  std::vector<Place> path{{config, back.before, 256}};
  std::set<std::pair<Config, Reading>> seen;
  TimeLimit time_limit(bytes.budget().seconds, "the search for an item that differs from those before");
  bool found = false;
  while (!path.empty() && !found) {
    time_limit.step();
    Place& from = path.back();
    if (from.byte-- == 0) {
      path.pop_back();
      continue;
    }
    const uint8_t byte = static_cast<uint8_t>(from.byte);
    if (bytes.step(from.config.state, byte) == kDead) continue;
    restore(from.at);
    const char text[] = {static_cast<char>(byte)};
    const Config to = run(bytes, walker, from.config, {text, 1});
    if (is_dead(to)) continue;
    found = !restricts();
    if (seen.insert({to, place()}).second) path.push_back({to, checkpoint(), 256});
  }
  return found;
}

bool Exclusion::never_restricts(std::string_view text, const DistinctFacts& facts) const {
  Reading at = now_;
  if (at.scope == 0) return false;
  size_t ended = 0;
  for (unsigned char byte : text) {
    if (at.inside) {
      if (follow(at, byte) == Ending::Known) return false;
      ended += !at.inside && at.sibling;
      continue;
    }
    if (opens(byte) || (byte == '"' && ended)) return false;
    if (follow_outside(at, byte); at.scope == 0) return false;
  }
  at.finished += static_cast<uint32_t>(ended);
  return !may_restrict(at, facts);
}

bool Exclusion::begins_no_second_item(std::string_view text) const {
  if (now_.scope == 0) return text.find_first_of("[{") == text.npos;
  bool inside = now_.inside, escaped = now_.letters.phase == Unescaper::kBackslash, named = inside && now_.sibling;
  uint32_t scope = now_.scope;
  for (size_t k = 0; k < text.size(); ++k) {
    const char byte = text[k];
    if (escaped) escaped = false;
    else if (byte == '\\') escaped = inside;
    else if (byte == '"') inside = !inside, named |= inside;
    if (inside) continue;
    if (byte == '[' || byte == '{') return text.find(',') == text.npos;
    if (byte == ']' || byte == '}') {
      if ((scope = scopes_[scope].below) == 0) return text.find_first_of("[{", k) == text.npos;
      named = false;
    }
    if (byte == ',' && (!scopes_[scope].object || named || strings_.any(scopes_[scope].root))) return false;
  }
  return true;
}

uint64_t Exclusion::hash_of_text(uint64_t hash, size_t from) const {
  for (size_t k = from; k < text_.size(); ++k) hash = mix(hash, static_cast<uint8_t>(text_[k]));
  return hash;
}

uint64_t Exclusion::hash_of_value() const {
  uint64_t hash = 1;
  each_letter([&](uint8_t letter) { hash = mix(hash, letter); });
  return hash;
}

uint64_t Exclusion::hash_of_known() const {
  uint64_t hash = 0;
  for (uint32_t scope = now_.scope; scope; scope = scopes_[scope].below) {
    hash = mix(hash, values_.hash_of_known(scopes_[scope].known) << 1 | scopes_[scope].object);
    hash = strings_.hash(hash, scopes_[scope].root);
  }
  return hash;
}

Ending Exclusion::read(uint8_t byte, bool values) {
  if (now_.scope == 0) return Ending::None;
  if (values) return read_value(byte);
  if (now_.inside) {
    if (now_.sibling) text_ += static_cast<char>(byte);
    return follow(now_, byte);
  }
  if (opens(byte)) open(byte, now_.scope);
  else follow_outside(now_, byte);
  if (now_.inside && now_.sibling) now_.begin = static_cast<uint32_t>(text_.size());
  return Ending::None;
}

Ending Exclusion::read_value(uint8_t byte) {
  if (now_.scalar == kNumber && !is_of_number(byte)) {
    if (now_.due) record_item();
    now_.watch = values_.end_number(now_.watch);
    now_.watch = values_.without_ended(now_.watch);
    now_.scalar = 0;
  }
  now_.due = false;
  kept_ = true;
  text_ += static_cast<char>(byte);
  if (now_.inside) return read_letter(byte);
  const bool array = !scopes_[now_.scope].object;
  if (now_.scalar == kNumber) {
    now_.watch = values_.digit(now_.watch, byte);
    return ended(false);
  }
  if (now_.scalar) {
    if (--now_.scalar) return Ending::None;
    now_.watch = values_.end_word(now_.watch);
    return ended(true);
  }
  switch (byte) {
    case ' ':
    case '\t':
    case '\n':
    case '\r': return Ending::None;
    case ',':
      if (array) now_.watch = values_.due(now_.watch, now_.scope, scopes_[now_.scope].known);
      [[fallthrough]];
    case ':': follow_outside(now_, byte); return Ending::None;
    case '}':
    case ']':
      now_.watch = values_.end_container(now_.watch);
      now_.item = scopes_[now_.scope].item_below;
      follow_outside(now_, byte);
      return now_.scope ? ended(true) : Ending::None;
    default: break;
  }
  if (byte == '"' && now_.sibling && !array) now_.watch = values_.begin_name(now_.watch);
  else now_.watch = values_.begin(now_.watch, byte);
  if (array) now_.item = static_cast<uint32_t>(text_.size() - 1);
  if (opens(byte)) {
    open(byte, now_.scope);
  } else if (byte == '"') {
    begin(now_);
    now_.begin = static_cast<uint32_t>(text_.size());
  } else {
    now_.sibling = false;
    now_.scalar = byte == 'n' || byte == 't' ? 3 : byte == 'f' ? 4 : kNumber;
    if (now_.scalar == kNumber) return ended(false);
  }
  return Ending::None;
}

Ending Exclusion::read_letter(uint8_t byte) {
  if (byte == '"' && now_.letters.phase == Unescaper::kPlain) {
    const bool array = !scopes_[now_.scope].object;
    now_.watch = now_.sibling && !array ? values_.end_name(now_.watch) : values_.without_ended(values_.end_string(now_.watch));
    if (array) now_.sibling = false;
    now_.inside = false;
    return now_.match && strings_.ends(now_.match) ? Ending::Known : Ending::New;
  }
  now_.letters.feed(byte, [&](uint8_t value) {
    now_.match = now_.match ? strings_.child(now_.match, value) : 0;
    now_.watch = values_.letter(now_.watch, value);
  });
  return Ending::None;
}

Ending Exclusion::ended(bool surely) {
  const bool known = !scopes_[now_.scope].object && values_.is_known(now_.watch, now_.scope);
  if (surely) now_.watch = values_.without_ended(now_.watch);
  return known ? Ending::Known : Ending::New;
}

void Exclusion::record_item() {
  ++now_.finished;
  uint32_t& known = scopes_[now_.scope].known;
  known = values_.add(now_.scope, known, std::string_view(text_).substr(now_.item));
}

void Exclusion::follow_outside(Reading& at, uint8_t byte) const {
  switch (byte) {
    case '"': begin(at); break;
    case '}':
    case ']':
      at.finished = scopes_[at.scope].finished_below;
      at.scope = scopes_[at.scope].below;
      at.sibling = false;
      break;
    case ',': at.sibling = true; break;
    case ':': at.sibling = false; break;
    default: break;
  }
}

void Exclusion::begin(Reading& at) const {
  at.inside = true;
  at.letters = {};
  const uint32_t root = scopes_[at.scope].root;
  at.match = at.sibling && strings_.any(root) ? root : 0;
}

State Exclusion::pass(ByteAutomaton& bytes, State raw, uint8_t byte, Ending ending) {
  const bool follows = now_.scope != 0 && !now_.inside;  // the reader has read the bracket itself
  if (!follows && (bytes.marks().kinds(raw) & bit(MarkKind::Opened))) {
    now_ = {};
    open(byte, 0);
  }
  if (ending == Ending::New && (bytes.marks().kinds(raw) & bit(MarkKind::Fresh))) {
    if (byte == '"') record();
    else if (now_.scalar == kNumber) now_.due = true;
    else record_item();
  }
  return bytes.marks().passed(raw, ending != Ending::Known);
}

void Exclusion::record() {
  ++now_.finished;
  uint32_t at = scopes_[now_.scope].root;
  Unescaper letters;
  for (uint32_t k = now_.begin; k + 1 < text_.size(); ++k) {
    letters.feed(static_cast<uint8_t>(text_[k]), [&](uint8_t value) { at = strings_.add(at, value); });
  }
  strings_.end(at);
}

}  // namespace tokenfst
