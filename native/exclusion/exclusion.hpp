// Dynamic exclusion: strings and other items of a JSON text that must differ from each other, which no automaton can remember.
//
// An expression says where: a mark Opened stands behind the opening bracket of an array or object, and a mark Fresh behind
// the closing quotation mark of a string in it (a free name, an item). The automaton reads both as the empty word; a
// sequence carries an Exclusion beside its configuration, and where a string ends at a Fresh mark that equals one that
// ended so before in the same container, the readings of the text that have this mark are dropped. Strings are equal if
// their values are, however they are spelled ("a" and "\u0061").
//
// The idea: which containers are open, and which string is being read, follows from the text alone: JSON is read the
// same way whatever the schema. So one small reader serves all readings of a grammar, starts at a mark Opened, and ends
// where that container does. Each container has a trie of the values of its finished strings, and while a string is read,
// `match` is the node of what was read of it: so what is excluded is known at each byte, and no string is compared twice.
//
// Invariants: a checkpoint is a few numbers, and going back costs what was done since. Copies share nothing. Cost: O(1) a byte; memory:
// known_strings.hpp.
//
// Items that are no strings (`Room::values`) are kept as trees, with a watch of those that the item being read may still
// become (known_values.hpp). A mark Fresh stands behind their last byte; behind a number, at each byte where it may end. A
// number is known by the byte behind it, so it is recorded there (`due`). What is open in an item says less than its text
// does, so a search goes through texts, as the reader reads them.
//
// Rejected: the set in the state (states without end); comparing finished strings one by one (quadratic); hashes of values,
// which do not tell whether a prefix can still become one.
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
  // Whether a known string that matches goes on with a byte.
  bool goes_on(uint8_t byte) const { return matches(now_) && strings_.child(now_.match, byte) != 0; }
  // Calls f(place) for the places of all bytes in a list, which ascend, behind which a string that matches a known one ends, or
  // still may match one.
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
  // What is read of the name or item that is being read.
  std::string value_so_far() const {
    std::string value;
    each_letter([&](uint8_t letter) { value += static_cast<char>(letter); });
    return value;
  }
  // Whether the string that is being read could still become one that is known.
  static bool matches(const Reading& at) { return at.inside && at.match != 0; }
  size_t memory() const { return values_.memory() + strings_.memory() + text_.capacity() + scopes_.capacity() * sizeof(Scope); }

  // A hash of all that the future depends on: what is open, what is finished there, and what is being read.
  uint64_t fingerprint() const {
    uint64_t hash =
        mix(uint64_t{now_.letters.unit} << 32 | uint64_t{now_.letters.high} << 16 | now_.letters.phase, now_.inside << 1 | now_.sibling);
    if (now_.inside && now_.sibling) hash = hash_of_text(hash, now_.begin);
    if (now_.scope && kept_) hash = hash_of_text(mix(hash, uint64_t{now_.scalar} << 1 | now_.due), 0);  // of every item
    return mix(hash, hash_of_known());
  }
  // Where the reader is, for searches: equal ones have equal ways to where no known item has a say. From the first place of a
  // search on, items agree with a known one up to there, and the watch says how far. While watches are held.
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
  // Takes back what is read in its scope, by an exception too.
  struct Back {
    Exclusion& exclusion;
    const Checkpoint before;
    ~Back() { exclusion.restore(before); }
  };
  // Until the hold ends, nothing has the number of a value or watch but what it was given to.
  struct Hold {
    explicit Hold(Exclusion& exclusion) : values_(exclusion.values_) { values_.hold(true); }
    ~Hold() { values_.hold(false); }

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

  // Runs a configuration over text. Dead where the language, or what is excluded, ends it; then restore() a checkpoint.
  Config run(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text) {
    for (unsigned char byte : text) {
      State raw = bytes.step(at.state, byte);
      if (raw == kDead) return {};
      const Ending ending = read(byte, bytes.marks().room.values);
      if (bytes.marks().lie_ahead(raw)) raw = pass(bytes, raw, byte, ending);
      if (is_dead(at = walker.arrive(at, raw))) return at;
    }
    return at;
  }

  // The same for a text that is known to lead to `raw`, over no marks.
  Config leap(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text, State raw) {
    Ending ending = Ending::None;
    for (unsigned char byte : text) ending = read(byte, bytes.marks().room.values);
    if (raw != kDead && bytes.marks().lie_ahead(raw)) raw = pass(bytes, raw, static_cast<uint8_t>(text.back()), ending);
    return walker.arrive(at, raw);
  }

  // Whether a string is due, and none may be left.
  static bool may_lack(const Reading& at, const Room& room) { return at.sibling && !at.inside && at.finished >= room.fewest; }
  // Whether what is excluded may have a say in how a text goes on: of the string that is being read, or of one that is due.
  static bool may_fail(const Reading& at, const Room& room) { return (room.thin && matches(at)) || may_lack(at, room); }
  // Where items of any kind must differ: whether a known one has a say in how the text goes on, of what is being read or due.
  bool has_say() const {
    if (now_.watch || matches(now_)) return true;
    return now_.scope && now_.sibling && !now_.inside && strings_.any(scopes_[now_.scope].root);
  }
  // Whether the string that is being read, or that is due, can end as none of those known. No look where every prefix has
  // more ends than a text has strings. Of strings that are too few in all, front ends take no more than there are.
  bool escapes(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config, const Reading& reading) {
    if (bytes.marks().room.values) return goes_free(bytes, walker, stacks, config);
    if (!may_fail(reading, bytes.marks().room)) return true;
    const StacksTrial trial(stacks);
    std::vector<std::pair<Config, Reading>> pending{{config, reading}};
    std::set<std::pair<Config, Reading>> seen;
    Pace pace(bytes.budget().seconds, "the search for a string that differs from those before");
    while (!pending.empty()) {
      const auto [from, at] = pending.back();
      pending.pop_back();
      pace.step(256);
      for (int byte = 255; byte >= 0; --byte) {
        State raw = bytes.step(from.state, static_cast<uint8_t>(byte));
        if (raw == kDead) continue;
        Reading next = at;
        Ending ending = Ending::None;
        if (at.inside) ending = follow(next, static_cast<uint8_t>(byte));
        else if (byte == '"') begin(next);
        if (bytes.marks().lie_ahead(raw)) raw = bytes.marks().passed(raw, ending != Ending::Known);
        std::pair<Config, Reading> reached{walker.arrive(from, raw), next};
        if (is_dead(reached.first)) continue;
        const bool blank = byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
        if (ending != Ending::None || (next.inside ? next.match == 0 : !blank)) return true;
        if (seen.insert(reached).second) pending.push_back(reached);
      }
    }
    return false;
  }

  // Where items of any kind must differ: whether the text can go on so that no known one has a say, from where it is.
  bool goes_free(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config) {
    if (!has_say()) return true;
    const StacksTrial trial(stacks);
    const Back back{*this, checkpoint()};
    const Hold hold(*this);
    struct Place {
      Config config;
      Checkpoint at;
      int byte;  // the last that was tried
    };
    std::vector<Place> path{{config, back.before, 256}};
    std::set<std::pair<Config, Reading>> seen;
    Pace pace(bytes.budget().seconds, "the search for an item that differs from those before");
    bool found = false;
    while (!path.empty() && !found) {
      pace.step();
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
      found = !has_say();
      if (seen.insert({to, place()}).second) path.push_back({to, checkpoint(), 256});
    }
    return found;
  }

  // Whether nothing that is excluded has a say in a text, if the language allows it: no known string, and none of two that it
  // begins, ends in it, and what it leaves open may end as another one. By what brackets and quotation marks say; false where
  // that is not all (a container that begins).
  bool indifferent(std::string_view text, const Room& room) const {
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
    return !may_fail(at, room);
  }

  // The same where items of any kind must differ, of a text that begins where none has a say: no item begins in it behind another,
  // and no name behind one that is remembered.
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

  // What a byte inside of a string makes of a reading.
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
  // Calls f(letter) for what is read of the name or item that is being read, however it is spelled.
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
  // What is known in open containers.
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

  // The same where items of any kind must differ.
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
  // A byte inside of a string.
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
  // What ends where a value does that is no string, or where a number may end.
  Ending ended(bool surely) {
    const bool known = !scopes_[now_.scope].object && values_.is_known(now_.watch, now_.scope);
    if (surely) now_.watch = values_.without_ended(now_.watch);
    return known ? Ending::Known : Ending::New;
  }
  // Puts the item that has just ended, and is no string, to those of its container.
  void record_item() {
    ++now_.finished;
    uint32_t& known = scopes_[now_.scope].known;
    known = values_.add(now_.scope, known, std::string_view(text_).substr(now_.item));
  }

  static bool opens(uint8_t byte) { return byte == '{' || byte == '['; }
  // What a byte outside of strings makes of a reading, but for one that opens a container.
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

  // What a quotation mark begins.
  void begin(Reading& at) const {
    at.inside = true;
    at.letters = {};
    const uint32_t root = scopes_[at.scope].root;
    at.match = at.sibling && strings_.any(root) ? root : 0;
  }

  // Past the marks of a state that the last byte led to.
  State pass(ByteAutomaton& bytes, State raw, uint8_t byte, Ending ending) {
    const bool follows = now_.scope != 0 && !now_.inside;  // the bracket was met as one
    if (!follows && (bytes.marks().signs(raw) & bit(Sign::Opened))) {
      now_ = {};
      open(byte, 0);
    }
    if (ending == Ending::New && (bytes.marks().signs(raw) & bit(Sign::Fresh))) {
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

  // Puts the string that has just ended into its container's trie.
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
  bool kept_ = false;  // all
  KnownValues values_;
  KnownStrings strings_;
  std::vector<Scope> scopes_;
};

// Takes back what is read in its scope, by an exception too.
struct ExclusionTrial {
  explicit ExclusionTrial(Exclusion& exclusion) : back_{exclusion, exclusion.checkpoint()} {}

 private:
  const Exclusion::Back back_;
};

}  // namespace tokenfst
