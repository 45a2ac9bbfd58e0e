// Dynamic exclusion: strings of a JSON text that must differ from each other, which no automaton can remember.
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
// Invariants: tries only grow; what a step changed in older nodes is in a log, so that a checkpoint is a few numbers and
// going back costs what was done since. Copies share nothing. Cost: O(1) a byte, 12 bytes for each byte of a new value
// that no other begins with. Rejected: the set in the state (states without end); comparing finished strings one by one
// (quadratic); hashes of values, which do not tell whether a prefix can still become one.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "walks/walker.hpp"

namespace tokenfst {

// The characters between quotation marks: from what is written to the bytes of the value, in UTF-8 (RFC 8259, section 7).
struct Unescaper {
  enum Phase : uint8_t { kPlain, kBackslash, kHex };  // from kHex on: how many digits are missing is 4 - (phase - kHex)
  uint16_t unit = 0;  // the digits so far
  uint16_t high = 0;  // the first half of a surrogate pair
  uint8_t phase = kPlain;
  auto operator<=>(const Unescaper&) const = default;

  template <class Emit>
  void feed(uint8_t byte, Emit&& emit) {
    if (phase == kPlain) {
      if (byte == '\\') phase = kBackslash;
      else emit(byte);
    } else if (phase == kBackslash) {
      phase = byte == 'u' ? kHex : kPlain;
      unit = 0;
      if (byte != 'u') emit(meaning(byte));
    } else {
      unit = static_cast<uint16_t>(unit << 4 | (byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10));
      if (++phase < kHex + 4) return;
      phase = kPlain;
      if (unit >= 0xd800 && unit < 0xdc00) high = unit;
      else encode(high ? 0x10000 + ((high - 0xd800u) << 10) + (unit - 0xdc00u) : unit, emit);
    }
  }

 private:
  static uint8_t meaning(uint8_t escape) {
    switch (escape) {
      case 'b': return '\b';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      default: return escape;
    }
  }
  template <class Emit>
  void encode(uint32_t code, Emit&& emit) {
    high = 0;
    if (code < 0x80) return emit(static_cast<uint8_t>(code));
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    emit(static_cast<uint8_t>((0xff00 >> (more + 1) & 0xff) | code >> 6 * more));
    for (int k = more; k-- > 0;) emit(static_cast<uint8_t>(0x80 | (code >> 6 * k & 0x3f)));
  }
};

// Where a text is, for its reader.
struct Reading {
  uint32_t scope = 0;  // the innermost open container; 0: none that matters
  uint32_t match = 0;  // in a string: the node of what is read of its value; 0: none begins so
  uint32_t begin = 0;  // in or behind a name or an item: where it began
  uint32_t finished = 0;  // strings of open containers
  Unescaper letters;
  bool inside = false;   // of a string
  bool sibling = false;  // in a string: a name or an item; outside: whether one may begin here
  auto operator<=>(const Reading&) const = default;
};

enum class Ending : uint8_t { None, New, Known };  // of a string, or not

class Exclusion {
 public:
  struct Checkpoint {
    Reading reading;
    uint32_t text, nodes, scopes, log;
  };

  const Reading& reading() const { return now_; }
  // Whether a known string that matches goes on with a byte.
  bool goes_on(uint8_t byte) const { return matches(now_) && child(now_.match, byte) != 0; }
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
    for (uint32_t known = nodes_[at.match].child; known; known = nodes_[known].next) {
      if (nodes_[known].byte != '"' && nodes_[known].byte != '\\') look_up(nodes_[known].byte);
    }
  }
  // What is read of the name or item that is being read.
  std::string value_so_far() const {
    std::string value;
    Unescaper letters;
    for (size_t k = now_.begin; k < text_.size(); ++k) {
      letters.feed(static_cast<uint8_t>(text_[k]), [&](uint8_t letter) { value += static_cast<char>(letter); });
    }
    return value;
  }
  // Whether the string that is being read could still become one that is known.
  static bool matches(const Reading& at) { return at.inside && at.match != 0; }
  size_t memory() const {
    return text_.capacity() + nodes_.capacity() * sizeof(Node) + scopes_.capacity() * sizeof(Scope) + log_.capacity() * sizeof(Change);
  }

  // A hash of all that the future depends on: what is open, what is finished there, and what is being read.
  uint64_t fingerprint() const {
    uint64_t hash = mix(uint64_t{now_.letters.unit} << 32 | uint64_t{now_.letters.high} << 16 | now_.letters.phase, now_.inside << 1 | now_.sibling);
    if (now_.inside && now_.sibling) {
      for (size_t k = now_.begin; k < text_.size(); ++k) hash = mix(hash, static_cast<uint8_t>(text_[k]));
    }
    for (uint32_t scope = now_.scope; scope; scope = scopes_[scope].below) {
      hash = mix(hash, scopes_[scope].object);
      std::vector<uint32_t> pending{scopes_[scope].root};
      while (!pending.empty()) {
        const Node& node = nodes_[pending.back()];
        pending.pop_back();
        hash = mix(hash, uint64_t{node.byte} << 2 | node.ends << 1 | (node.child != 0));
        for (uint32_t child = node.child; child; child = nodes_[child].next) pending.push_back(child);
      }
    }
    return hash;
  }

  Checkpoint checkpoint() const {
    auto size = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
    return {now_, size(text_), size(nodes_), size(scopes_), size(log_)};
  }
  void restore(const Checkpoint& before) {
    for (; log_.size() > before.log; log_.pop_back()) {
      const Change& change = log_.back();
      if (change.node >= before.nodes) continue;
      nodes_[change.node].child = change.child;
      nodes_[change.node].ends = change.ends;
    }
    now_ = before.reading;
    text_.resize(before.text);
    nodes_.resize(before.nodes);
    scopes_.resize(before.scopes);
  }

  // Runs a configuration over text. Dead where the language, or what is excluded, ends it; then restore() a checkpoint.
  Config run(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text) {
    for (unsigned char byte : text) {
      State raw = bytes.step(at.state, byte);
      if (raw == kDead) return {};
      const Ending ending = read(byte);
      if (bytes.is_marked(raw)) raw = pass(bytes, raw, byte, ending);
      if (is_dead(at = walker.arrive(at, raw))) return at;
    }
    return at;
  }

  // The same for a text that is known to lead to `raw`, over no marks.
  Config leap(ByteAutomaton& bytes, Walker& walker, Config at, std::string_view text, State raw) {
    Ending ending = Ending::None;
    for (unsigned char byte : text) ending = read(byte);
    if (raw != kDead && bytes.is_marked(raw)) raw = pass(bytes, raw, static_cast<uint8_t>(text.back()), ending);
    return walker.arrive(at, raw);
  }

  // Whether a string is due, and none may be left.
  static bool may_lack(const Reading& at, const Room& room) { return at.sibling && !at.inside && at.finished >= room.fewest; }
  // Whether what is excluded may have a say in how a text goes on: of the string that is being read, or of one that is due.
  static bool may_fail(const Reading& at, const Room& room) { return (room.thin && matches(at)) || may_lack(at, room); }
  // Whether the string that is being read, or that is due, can end as none of those known. No look where every prefix has
  // more ends than a text has strings. Of strings that are too few in all, front ends take no more than there are.
  bool escapes(ByteAutomaton& bytes, Walker& walker, Stacks& stacks, Config config, const Reading& reading) const {
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
        if (bytes.is_marked(raw)) raw = bytes.passed(raw, ending != Ending::Known);
        std::pair<Config, Reading> reached{walker.arrive(from, raw), next};
        if (is_dead(reached.first)) continue;
        const bool blank = byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
        if (ending != Ending::None || (next.inside ? next.match == 0 : !blank)) return true;
        if (seen.insert(reached).second) pending.push_back(reached);
      }
    }
    return false;
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

  // What a byte inside of a string makes of a reading.
  Ending follow(Reading& at, uint8_t byte) const {
    if (byte == '"' && at.letters.phase == Unescaper::kPlain) {
      at.inside = false;
      return at.match && nodes_[at.match].ends ? Ending::Known : Ending::New;
    }
    at.letters.feed(byte, [&](uint8_t value) { at.match = at.match ? child(at.match, value) : 0; });
    return Ending::None;
  }

 private:
  struct Node {
    uint32_t child = 0, next = 0;
    uint8_t byte = 0;
    bool ends = false;
  };
  struct Scope {
    uint32_t below, root;
    bool object;
    uint32_t finished_below;
  };
  struct Change {  // what a node was
    uint32_t node, child;
    bool ends;
  };

  Ending read(uint8_t byte) {
    if (now_.scope == 0) return Ending::None;
    if (now_.inside) {
      if (now_.sibling) text_ += static_cast<char>(byte);
      return follow(now_, byte);
    }
    if (opens(byte)) open(byte, now_.scope);
    else follow_outside(now_, byte);
    if (now_.inside && now_.sibling) now_.begin = static_cast<uint32_t>(text_.size());
    return Ending::None;
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
    const Node& root = nodes_[scopes_[at.scope].root];
    at.match = at.sibling && (root.child || root.ends) ? scopes_[at.scope].root : 0;
  }

  // Past the marks of a state that the last byte led to.
  State pass(ByteAutomaton& bytes, State raw, uint8_t byte, Ending ending) {
    const bool follows = now_.scope != 0 && !now_.inside;  // the bracket was met as one
    if (!follows && (bytes.signs(raw) & bit(Sign::Opened))) {
      now_ = {};
      open(byte, 0);
    }
    if (ending == Ending::New && (bytes.signs(raw) & bit(Sign::Fresh))) record();
    return bytes.passed(raw, ending != Ending::Known);
  }

  void open(uint8_t bracket, uint32_t below) {
    if (scopes_.empty()) scopes_.push_back({0, 0, false, 0});
    if (nodes_.empty()) nodes_.push_back({});
    scopes_.push_back({below, static_cast<uint32_t>(nodes_.size()), bracket == '{', now_.finished});
    nodes_.push_back({});
    now_.scope = static_cast<uint32_t>(scopes_.size() - 1);
    now_.sibling = true;
  }

  // Puts the string that has just ended into its container's trie.
  void record() {
    ++now_.finished;
    uint32_t at = scopes_[now_.scope].root;
    Unescaper letters;
    for (uint32_t k = now_.begin; k + 1 < text_.size(); ++k) {
      letters.feed(static_cast<uint8_t>(text_[k]), [&](uint8_t value) {
        uint32_t next = child(at, value);
        if (next == 0) {
          next = static_cast<uint32_t>(nodes_.size());
          nodes_.push_back({0, nodes_[at].child, value, false});
          log_.push_back({at, nodes_[at].child, nodes_[at].ends});
          nodes_[at].child = next;
        }
        at = next;
      });
    }
    log_.push_back({at, nodes_[at].child, nodes_[at].ends});
    nodes_[at].ends = true;
  }

  uint32_t child(uint32_t node, uint8_t byte) const {
    uint32_t at = nodes_[node].child;
    while (at && nodes_[at].byte != byte) at = nodes_[at].next;
    return at;
  }

  Reading now_;
  std::string text_;  // names and items, as they are written
  std::vector<Node> nodes_;
  std::vector<Scope> scopes_;
  std::vector<Change> log_;
};

// Takes back what is read in its scope, by an exception too.
struct ExclusionTrial {
  explicit ExclusionTrial(Exclusion& exclusion) : exclusion_(exclusion), before_(exclusion.checkpoint()) {}
  ~ExclusionTrial() { exclusion_.restore(before_); }

 private:
  Exclusion& exclusion_;
  const Exclusion::Checkpoint before_;
};

// One text of a byte automaton, what it excludes and all, byte by byte.
class TextWalk {
 public:
  explicit TextWalk(ByteAutomaton& bytes) : bytes_(bytes), walker_(bytes, stacks_), at_(walker_.start()) {}

  Config config() const { return at_; }
  bool accepting() const { return bytes_.accepting(at_.state); }
  // Reads on; false, and the walk is over, where no word goes on so.
  bool step(uint8_t byte) {
    const char text[] = {static_cast<char>(byte)};
    at_ = bytes_.marks().any ? exclusion_.run(bytes_, walker_, at_, {text, 1}) : walker_.step(at_, byte);
    if (!is_dead(at_) && !exclusion_.escapes(bytes_, walker_, stacks_, at_, exclusion_.reading())) at_ = {};
    return !is_dead(at_);
  }
  // The same; where no word goes on so, the walk stays where it is.
  bool try_step(uint8_t byte) {
    if (!bytes_.marks().any) {
      const Config to = walker_.step(at_, byte);
      if (is_dead(to)) return false;
      at_ = to;
      return true;
    }
    const Config before = at_;
    const Exclusion::Checkpoint reading = exclusion_.checkpoint();
    if (step(byte)) return true;
    exclusion_.restore(reading);
    at_ = before;
    return false;
  }
  // The bytes below `limit` that some word goes on with behind `way`, and whether that is a word. The walk stays where it is.
  std::pair<std::string, bool> next_bytes(std::string_view way, int limit) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config before = at_;
    std::pair<std::string, bool> found{{}, false};
    if (run(way) == way.size()) {
      for (int byte = 0; byte < limit; ++byte) {
        if (can_step(static_cast<uint8_t>(byte))) found.first += static_cast<char>(byte);
      }
      found.second = accepting();
    }
    at_ = before;
    return found;
  }
  // How much of a text some word begins with.
  size_t run(std::string_view text) {
    size_t length = 0;
    while (length < text.size() && step(static_cast<uint8_t>(text[length]))) ++length;
    return length;
  }
  // Whether some word goes on with a byte. The walk stays where it is.
  bool can_step(uint8_t byte) {
    const StacksTrial trial(stacks_);
    const ExclusionTrial reading(exclusion_);
    const Config before = at_;
    const bool found = step(byte);
    at_ = before;
    return found;
  }

 private:
  ByteAutomaton& bytes_;
  Stacks stacks_;
  Walker walker_;
  Exclusion exclusion_;
  Config at_;
};

}  // namespace tokenfst
