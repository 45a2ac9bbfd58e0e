// Dynamic exclusion: strings and other items of a JSON text that must differ from each other. A finite automaton cannot
// remember them, so each sequence has a record of its own.
//
// An expression marks the places: a mark Opened follows the opening bracket of an array or object, and a mark Fresh
// follows the closing quotation mark of a string in it (a free name, an item). The automaton reads both as the empty
// word. A sequence carries an Exclusion beside its configuration. If a string that ends at a Fresh mark equals a string
// that ended at one before in the same container, the readings of the text that have this mark are dropped. A *reading* is
// one way in which the expression derives the text. Strings are equal if their values are, however they are spelled ("a" and
// "\u0061"). A string that was recorded is a *known* string.
//
// The idea: which containers are open, and which string is being read, follows from the text alone, because JSON is
// read in the same way whatever the schema. So one small reader serves all readings of a grammar. It starts at a mark
// Opened and ends with that container. Each container has a trie of the values of its finished strings. While a string
// is read, `match` is the trie node of the prefix read so far, so the excluded continuations are known at each byte,
// and no string is compared twice.
//
// Invariants: a checkpoint is a few numbers, and restoring one takes as many steps as were made since. Copies share
// nothing. Cost: O(1) for each byte; memory: known_strings.hpp.
//
// Items that are not strings (`DistinctFacts::values`) are kept as trees, with a watch of the known items that the item
// being read may still become equal to (known_values.hpp). A mark Fresh follows their last byte; for a number, each
// byte at which it may end. A number is known to have ended only by the byte after it, so it is recorded there (`due`).
// The state at an open item does not determine the item's text so far, so a search reads texts byte by byte with this
// reader.
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

// The record of one sequence, and the reader that fills it. Not for several threads at once.
class Exclusion {
 public:
  // A position to which restore() returns. Valid until an earlier one is restored.
  struct Checkpoint {
    Reading reading;
    uint32_t text, scopes;
    KnownStrings::Checkpoint strings;
    KnownValues::Checkpoint values;
  };

  const Reading& reading() const { return now_; }
  // Whether a known string that matches the prefix so far continues with a byte.
  bool goes_on(uint8_t byte) const { return matches(now_) && strings_.child(now_.match, byte) != 0; }
  // Calls f(index) for each of the ascending `bytes` by which a string that matches a known one may end, or go on to match
  // one. Inside an escape these are all bytes.
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
  std::string value_so_far() const;
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

  // A hash of everything that the possible continuations depend on: the open containers, the finished strings in them, and
  // the string being read.
  uint64_t fingerprint() const;
  // The position of the reader as a key of searches: from two equal positions the same texts lead to where no known item
  // restricts the text any more. Hashes stand for the texts. Valid only while numbers are pinned (PinnedNumbers).
  Reading place() const;
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
  void restore(const Checkpoint& before);

  // Reads a text from the configuration `at`, and returns the configuration after it. Dead if no word continues so, or only
  // by repeating a known string; then the caller must restore() a checkpoint. O(bytes).
  Config run(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text);

  // The same for a text that is not empty, and that is known to lead to `raw` and to pass no marks before its end.
  Config text_step(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text, State raw);

  // Whether a string may begin here, and so many are finished that the language may have no further one.
  static bool may_run_out(const Reading& at, const DistinctFacts& facts) { return at.sibling && !at.inside && at.finished >= facts.fewest; }
  // Whether excluded strings may restrict how a text continues: the string that is being read, or one that may begin.
  static bool may_restrict(const Reading& at, const DistinctFacts& facts) {
    return (facts.few_endings && matches(at)) || may_run_out(at, facts);
  }
  // The same for items of any kind: whether a known item restricts how the item that is being read, or that may begin here,
  // can continue.
  bool restricts() const {
    if (now_.watch || matches(now_)) return true;
    return now_.scope && now_.sibling && !now_.inside && strings_.any(scopes_[now_.scope].root);
  }
  // Whether the string that is being read, or that may begin, can end as none of the known ones. True without a search
  // if every prefix has more endings than a text has strings. Not asked: whether strings after that one are left; if a
  // language is finite, the schema front end does not allow more items than it has words. Raises BudgetExceeded("seconds").
  bool can_differ(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config, const Reading& reading);

  // The same for items of any kind: whether the text can continue from here to where no known item restricts it.
  bool items_can_differ(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config);

  // Whether excluded strings surely do not matter in a text that the language allows: it ends no known string, it does not
  // end two equal strings, and the string that it leaves open may end as a new one. Decided from brackets and quotation
  // marks alone; false if these do not suffice (a container begins). O(bytes of the text).
  bool never_restricts(std::string_view text, const DistinctFacts& facts) const;

  // The same for items of any kind, in a text that begins where no known item restricts it: whether no item begins in it
  // after another one, and no name after a recorded one.
  bool begins_no_second_item(std::string_view text) const;

  // Updates a reading by a byte inside a string. Returns whether the string ends there, and if so, as a known one.
  Ending follow(Reading& at, uint8_t byte) const {
    if (byte == '"' && at.letters.phase == Unescaper::kPlain) {
      at.inside = false;
      return at.match && strings_.ends(at.match) ? Ending::Known : Ending::New;
    }
    at.letters.feed(byte, [&](uint8_t value) { at.match = at.match ? strings_.child(at.match, value) : 0; });
    return Ending::None;
  }

 private:
  struct Scope {  // an open container
    uint32_t below, root;  // the container around it, and its trie of known strings
    bool object;
    uint32_t finished_below, item_below;  // Reading::finished and Reading::item before it opened
    uint32_t known = 0;  // the last of its known items
  };
  static constexpr uint8_t kNumber = UINT8_MAX;

  uint64_t hash_of_text(uint64_t hash, size_t from) const;
  // Calls f(letter) for each letter of the name or item that is being read, however it is spelled.
  template <class F>
  void each_letter(F&& f) const {
    Unescaper letters;
    for (size_t k = now_.begin; k < text_.size(); ++k) letters.feed(static_cast<uint8_t>(text_[k]), f);
  }
  uint64_t hash_of_value() const;
  // A hash of the known strings and items of open containers.
  uint64_t hash_of_known() const;

  // Reads a byte; returns whether a string or item ends there, and if so, as a known one.
  Ending read(uint8_t byte, bool values);

  // The same if items of any kind must differ.
  Ending read_value(uint8_t byte);
  // Reads a byte inside a string.
  Ending read_letter(uint8_t byte);
  // The ending of a value that is not a string; `surely`: false for a number, which may end here.
  Ending ended(bool surely);
  // Adds the item that has just ended, and is not a string, to those of its container.
  void record_item();

  static bool opens(uint8_t byte) { return byte == '{' || byte == '['; }
  // Updates a reading by a byte outside strings that opens no container.
  void follow_outside(Reading& at, uint8_t byte) const;

  // Updates a reading by a quotation mark that begins a string.
  void begin(Reading& at) const;

  // Passes the marks of the state `raw` that the last byte led to, and records what ends there. Returns the state after
  // the marks.
  State pass(ByteAutomaton& bytes, State raw, uint8_t byte, Ending ending);

  // Opens a container inside of the container `below`.
  void open(uint8_t bracket, uint32_t below) {
    if (scopes_.empty()) scopes_.push_back({0, 0, false, 0, 0});
    scopes_.push_back({below, strings_.begin_trie(), bracket == '{', now_.finished, now_.item});
    now_.scope = static_cast<uint32_t>(scopes_.size() - 1);
    now_.sibling = true;
  }

  // Adds the string that has just ended to the trie of its container.
  void record();

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
