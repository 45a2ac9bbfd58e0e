// Dynamic exclusion: strings and other items of a JSON text that must differ from each other, which no finite automaton
// can remember.
//
// An expression marks the places: a mark Opened follows the opening bracket of an array or object, and a mark Fresh
// follows the closing quotation mark of a string in it (a free name, an item). The automaton reads both as the empty
// word. A sequence carries an Exclusion beside its configuration. If a string that ends at a Fresh mark equals a string
// that ended at one before in the same container, the readings of the text that have this mark are dropped. Strings are
// equal if their values are, however they are spelled ("a" and "\u0061").
//
// The idea: which containers are open, and which string is being read, follows from the text alone, because JSON is
// read in the same way whatever the schema. So one small reader serves all readings of a grammar. It starts at a mark
// Opened and ends with that container. Each container has a trie of the values of its finished strings. While a string
// is read, `match` is the trie node of the prefix read so far, so the excluded continuations are known at each byte,
// and no string is compared twice.
//
// Invariants: a checkpoint is a few numbers, and restoring one costs what was done since. Copies share nothing. Cost:
// O(1) for each byte; memory: known_strings.hpp.
//
// Items that are not strings (`DistinctFacts::values`) are kept as trees, with a watch of the known items that the item
// being read may still become equal to (known_values.hpp). A mark Fresh follows their last byte; for a number, each
// byte at which it may end. A number is known to have ended only by the byte after it, so it is recorded there (`due`).
// The open part of an item does not determine its text, so a search goes through texts, as the reader reads them.
//
// Rejected: the set of strings as part of the state (infinitely many states); comparing finished strings one by one
// (quadratic); hashes of values, which do not say whether a prefix can still become one.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exclusion/known_strings.hpp"
#include "exclusion/reading.hpp"
#include "walks/walker.hpp"

namespace tokenfst {

class Exclusion {
 public:
  struct Checkpoint {
    Reading reading;
    uint32_t text, scopes;
    KnownStrings::Checkpoint strings;
    KnownValues::Checkpoint values;
  };

  const Reading& reading() const { return now_; }
  // Whether a known string that matches the prefix so far continues with a byte.
  bool goes_on(uint8_t byte) const { return matches(now_) && strings_.child(now_.match, byte) != 0; }
  // Calls f(index) for each of the ascending `bytes` after which a string that matches a known one ends, or may still
  // match one.
  template <class F>
  void each_onward(const Reading& at, std::span<const uint8_t> bytes, F&& f) const {
    if (at.letters.phase != Unescaper::kPlain || at.letters.high) {
      for (size_t place = 0; place < bytes.size(); ++place) f(place);
      return;
    }
    auto look_up = [&](uint8_t byte) {
      const auto found = std::ranges::lower_bound(bytes, byte);
      if (found != bytes.end() && *found == byte) f(static_cast<size_t>(found - bytes.begin()));
    };
    look_up('"');
    look_up('\\');
    strings_.each_child(at.match, [&](uint8_t letter) {
      if (letter != '"' && letter != '\\') look_up(letter);
    });
  }
  // The value so far of the name or item that is being read.
  std::string value_so_far() const {
    std::string value;
    each_letter([&](uint8_t letter) { value += static_cast<char>(letter); });
    return value;
  }
  // Whether the string that is being read could still become a known one.
  static bool matches(const Reading& at) { return at.inside && at.match != 0; }
  // Whether some open container has a known string.
  bool knows_any() const {
    for (uint32_t scope = now_.scope; scope; scope = scopes_[scope].below) {
      if (strings_.any(scopes_[scope].root)) return true;
    }
    return false;
  }
  size_t memory() const { return values_.memory() + strings_.memory() + text_.capacity() + scopes_.capacity() * sizeof(Scope); }

  // A hash of everything that the future depends on: the open containers, the finished strings in them, and the string
  // being read.
  uint64_t fingerprint() const {
    uint64_t hash =
        mix(uint64_t{now_.letters.unit} << 32 | uint64_t{now_.letters.high} << 16 | now_.letters.phase, now_.inside << 1 | now_.sibling);
    if (now_.inside && now_.sibling) hash = hash_of_text(hash, now_.begin);
    if (now_.scope && kept_) hash = hash_of_text(mix(hash, uint64_t{now_.scalar} << 1 | now_.due), 0);  // the text of every item
    return mix(hash, hash_of_known());
  }
  // The position of the reader, for searches: equal positions have equal paths to where no known item restricts the
  // text. From the first position of a search on, items agree with a known one up to there, and the watch says how far.
  // Valid only while numbers are pinned (PinnedNumbers).
  Reading place() const {
    Reading at = now_;
    at.begin = 0;
    if (!kept_ || now_.scope == 0) return at;
    const uint64_t hash = mix(mix(values_.hash_of(now_.watch), now_.inside && now_.match ? hash_of_value() : 0), hash_of_known());
    at.begin = static_cast<uint32_t>(hash), at.item = static_cast<uint32_t>(hash >> 32);
    at.scope = at.finished = 0;
    at.match = now_.match != 0, at.watch = now_.watch != 0;
    return at;
  }
  // Restores the checkpoint when its scope ends, also by an exception.
  struct Rollback {
    Exclusion& exclusion;
    const Checkpoint before;
    ~Rollback() { exclusion.restore(before); }
  };
  // While this exists, no number of a value or watch is used again for another one.
  struct PinnedNumbers {
    explicit PinnedNumbers(Exclusion& exclusion) : values_(exclusion.values_) { values_.pin_numbers(true); }
    ~PinnedNumbers() { values_.pin_numbers(false); }

   private:
    KnownValues& values_;
  };

  Checkpoint checkpoint() const {
    auto size = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
    return {now_, size(text_), size(scopes_), strings_.checkpoint(), values_.checkpoint()};
  }
  void restore(const Checkpoint& before) {
    strings_.restore(before.strings);
    values_.restore(before.values, [&](uint32_t scope, uint32_t known) { scopes_[scope].known = known; });
    now_ = before.reading;
    text_.resize(before.text);
    scopes_.resize(before.scopes);
  }

  // Runs a configuration over a text. Returns a dead one if the language or an excluded string ends it; then restore()
  // a checkpoint.
  Config run(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text) {
    for (unsigned char byte : text) {
      State raw = bytes.step(at.state, byte);
      if (raw == kDead) return {};
      const Ending ending = read(byte, bytes.marks().facts.values);
      if (bytes.marks().is_marked(raw)) raw = pass(bytes, raw, byte, ending);
      if (is_dead(at = walker.arrive(at, raw))) return at;
    }
    return at;
  }

  // The same for a text that is known to lead to `raw` and to pass no marks before its end.
  Config text_step(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text, State raw) {
    Ending ending = Ending::None;
    for (unsigned char byte : text) ending = read(byte, bytes.marks().facts.values);
    if (raw != kDead && bytes.marks().is_marked(raw)) raw = pass(bytes, raw, static_cast<uint8_t>(text.back()), ending);
    return walker.arrive(at, raw);
  }

  // Whether a string may begin here, although the language may have no further one.
  static bool may_run_out(const Reading& at, const DistinctFacts& facts) { return at.sibling && !at.inside && at.finished >= facts.fewest; }
  // Whether excluded strings may restrict how a text continues: the string that is being read, or one that may begin.
  static bool may_restrict(const Reading& at, const DistinctFacts& facts) {
    return (facts.few_endings && matches(at)) || may_run_out(at, facts);
  }
  // The same for items of any kind: whether a known item restricts how the item that is being read, or may begin,
  // continues.
  bool restricts() const {
    if (now_.watch || matches(now_)) return true;
    return now_.scope && now_.sibling && !now_.inside && strings_.any(scopes_[now_.scope].root);
  }
  // Whether the string that is being read, or that may begin, can end as none of the known ones. True without a search
  // if every prefix has more continuations than a text has strings. If a language has too few strings in all, front
  // ends allow no more items than there are.
  bool can_differ(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config, const Reading& reading) {
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

  // The same for items of any kind: whether the text can continue from here to where no known item restricts it.
  bool items_can_differ(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config) {
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

  // Whether no excluded string restricts a text that the language allows: it ends no known string, it does not end two
  // equal strings that it begins itself, and the string that it leaves open may end as a new one. Decided from brackets
  // and quotation marks alone; false if these do not suffice (a container begins).
  bool never_restricts(std::string_view text, const DistinctFacts& facts) const {
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

  // The same for items of any kind, in a text that begins where none restricts it: no item begins in it after another
  // one, and no name after a recorded one.
  bool begins_no_second_item(std::string_view text) const {
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

  // Updates a reading by a byte inside a string.
  Ending follow(Reading& at, uint8_t byte) const {
    if (byte == '"' && at.letters.phase == Unescaper::kPlain) {
      at.inside = false;
      return at.match && strings_.ends(at.match) ? Ending::Known : Ending::New;
    }
    at.letters.feed(byte, [&](uint8_t value) { at.match = at.match ? strings_.child(at.match, value) : 0; });
    return Ending::None;
  }

 private:
  struct Scope {
    uint32_t below, root;
    bool object;
    uint32_t finished_below, item_below;
    uint32_t known = 0;  // the last of its known items
  };
  static constexpr uint8_t kNumber = UINT8_MAX;

  uint64_t hash_of_text(uint64_t hash, size_t from) const {
    for (size_t k = from; k < text_.size(); ++k) hash = mix(hash, static_cast<uint8_t>(text_[k]));
    return hash;
  }
  // Calls f(letter) for each letter of the name or item that is being read, however it is spelled.
  template <class F>
  void each_letter(F&& f) const {
    Unescaper letters;
    for (size_t k = now_.begin; k < text_.size(); ++k) letters.feed(static_cast<uint8_t>(text_[k]), f);
  }
  uint64_t hash_of_value() const {
    uint64_t hash = 1;
    each_letter([&](uint8_t letter) { hash = mix(hash, letter); });
    return hash;
  }
  // A hash of the known strings and items of open containers.
  uint64_t hash_of_known() const {
    uint64_t hash = 0;
    for (uint32_t scope = now_.scope; scope; scope = scopes_[scope].below) {
      hash = mix(hash, values_.hash_of_known(scopes_[scope].known) << 1 | scopes_[scope].object);
      hash = strings_.hash(hash, scopes_[scope].root);
    }
    return hash;
  }

  Ending read(uint8_t byte, bool values) {
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

  // The same if items of any kind must differ.
  Ending read_value(uint8_t byte) {
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
  // Reads a byte inside a string.
  Ending read_letter(uint8_t byte) {
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
  // The ending of a value that is not a string; `surely`: false for a number, which may end here.
  Ending ended(bool surely) {
    const bool known = !scopes_[now_.scope].object && values_.is_known(now_.watch, now_.scope);
    if (surely) now_.watch = values_.without_ended(now_.watch);
    return known ? Ending::Known : Ending::New;
  }
  // Adds the item that has just ended, and is not a string, to those of its container.
  void record_item() {
    ++now_.finished;
    uint32_t& known = scopes_[now_.scope].known;
    known = values_.add(now_.scope, known, std::string_view(text_).substr(now_.item));
  }

  static bool opens(uint8_t byte) { return byte == '{' || byte == '['; }
  // Updates a reading by a byte outside strings that opens no container.
  void follow_outside(Reading& at, uint8_t byte) const {
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

  // Updates a reading by a quotation mark that begins a string.
  void begin(Reading& at) const {
    at.inside = true;
    at.letters = {};
    const uint32_t root = scopes_[at.scope].root;
    at.match = at.sibling && strings_.any(root) ? root : 0;
  }

  // Passes the marks of a state that the last byte led to.
  State pass(ByteAutomaton& bytes, State raw, uint8_t byte, Ending ending) {
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

  void open(uint8_t bracket, uint32_t below) {
    if (scopes_.empty()) scopes_.push_back({0, 0, false, 0, 0});
    scopes_.push_back({below, strings_.begin_trie(), bracket == '{', now_.finished, now_.item});
    now_.scope = static_cast<uint32_t>(scopes_.size() - 1);
    now_.sibling = true;
  }

  // Adds the string that has just ended to the trie of its container.
  void record() {
    ++now_.finished;
    uint32_t at = scopes_[now_.scope].root;
    Unescaper letters;
    for (uint32_t k = now_.begin; k + 1 < text_.size(); ++k) {
      letters.feed(static_cast<uint8_t>(text_[k]), [&](uint8_t value) { at = strings_.add(at, value); });
    }
    strings_.end(at);
  }

  Reading now_;
  std::string text_;  // names and items, as they are written; all of the containers, if items of any kind must differ
  bool kept_ = false;  // whether `text_` has all of the containers
  KnownValues values_;
  KnownStrings strings_;
  std::vector<Scope> scopes_;
};

// Restores the exclusion when its scope ends, also by an exception.
struct ExclusionTrial {
  explicit ExclusionTrial(Exclusion& exclusion) : back_{exclusion, exclusion.checkpoint()} {}

 private:
  const Exclusion::Rollback back_;
};

}  // namespace tokenfst
