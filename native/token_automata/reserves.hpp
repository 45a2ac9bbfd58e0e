// Reserves: how many bytes at most complete a text behind any one token, by the form of its expression.
//
// With so many tokens left all tokens fit, since a byte may always be a token: then a mask within a limit is the mask, and no
// token is looked at. For an expression and a number q of rare bytes (rare_bytes.hpp) `most[q]` bounds the least length of what
// is left behind any prefix with at most q rare bytes, the empty one too:
//
//   most(a·b)[q] = max(most(a)[q] + least(b), most(b)[q - rare(a)]),   most(a|b)[q] = max(most(a)[q], most(b)[q])
//
// where rare(a) is the least number of rare bytes in a word of a. So what lies behind more structure than one token can read does
// not count, and rules that call themselves have finite bounds: each turn reads a rare byte. Where a turn need not, where a bound
// has no end within kMostRounds, and where intersections have too many states, it is kUnreachable: then others must decide.
//
// Invariant: whatever one token leads to, its length by Lengths is at most the bound. O(1) for each part that is new.
#pragma once

#include <atomic>

#include "byte_automata/lengths.hpp"
#include "vocabulary/vocabulary.hpp"

namespace tokenfst {

class Reserves {
 public:
  Reserves(ByteAutomaton& bytes, const Vocabulary& vocabulary, Lengths& lengths)
      : bytes_(bytes), vocabulary_(vocabulary), lengths_(lengths) {}

  // Of an expression; and the bytes of some completion of it. Under the owner's mutex.
  uint32_t of(NodeId id) { return found(id).most[vocabulary_.rare().most]; }
  uint32_t needed(NodeId id) { return found(id).least; }
  // At any time, of any thread.
  size_t memory() const { return held_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kColumns = RareBytes::kMost + 1, kMostExplored = 1024, kMostNested = 8, kMostRounds = 64;
  static constexpr uint32_t kMostWords = 256, kMostSteps = 512;

  struct Part {
    uint32_t least = 0, rare = 0;  // kUnreachable: it has no word
    std::array<uint32_t, kColumns> most{};

    bool dead() const { return rare == kUnreachable; }
    bool operator==(const Part&) const = default;
  };
  static Part of_length(uint32_t least, uint32_t most) {
    Part made{least, 0, {}};
    made.most.fill(most);
    return made;
  }
  static Part dead() { return {kUnreachable, kUnreachable, {}}; }
  static Part both(const Part& a, const Part& b) {
    if (a.dead() || b.dead()) return dead();
    Part made{plus(a.least, b.least), std::min<uint32_t>(a.rare + b.rare, kColumns), {}};
    for (size_t q = 0; q < kColumns; ++q) made.most[q] = std::max(plus(a.most[q], b.least), a.rare <= q ? b.most[q - a.rare] : 0);
    return made;
  }
  static void unite(Part& a, const Part& b) {
    if (b.dead()) return;
    a.least = std::min(a.least, b.least);
    a.rare = std::min(a.rare, b.rare);
    for (size_t q = 0; q < kColumns; ++q) a.most[q] = std::max(a.most[q], b.most[q]);
  }
  static uint32_t times(uint32_t length, uint32_t count) {
    const uint64_t all = uint64_t{length} * count;
    return count == 0 ? 0 : all >= kUnknown ? kUnreachable : static_cast<uint32_t>(all);
  }

  const Part& found(NodeId id) {
    rare_ = &vocabulary_.rare();
    try {
      const Part& made = part(id);
      count_memory();
      return made;
    } catch (...) {
      give_up();
      count_memory();
      throw;
    }
  }
  void count_memory() {
    const size_t held = parts_.size() * (sizeof(Part) + 32) + rules_.size() * sizeof(Rule) + options_.size() * 128;
    held_.store(held, std::memory_order_relaxed);
  }
  void give_up();
  Node node(NodeId id);
  std::vector<NodeId> list(NodeId id);
  const Part& part(NodeId id);
  const Part& keep(NodeId id, const Part& found);
  Part element(NodeId id);
  Part of_words(const Lexicon& words, uint32_t number, uint32_t state);
  // Members in any order: while one is read, all others that are required may be missing. Of those that are not required the longest are
  // taken up to the least number of members.
  struct Options {
    std::vector<uint32_t> sizes;  // with a separator, by tag; 0: need not come
    uint32_t missing = 0;         // what all that must come have together
    Part begun;                   // a separator, or a member that was begun, and all that must come behind it
  };
  const Options& options(NodeId id, const Node& at);
  Part unordered(NodeId id, const Node& at);
  Part explored(NodeId start);
  bool is_explored(NodeId id);
  Part intersection(NodeId id);
  uint32_t steps(NodeId id);
  uint32_t longest_token() const;
  NodeId widened(NodeId id, uint32_t& turns);
  std::optional<Part> without_few(NodeId id);
  uint64_t count(NodeId id);
  Part machine(const Node& at);
  struct Nesting {
    explicit Nesting(size_t& depth) : depth_(depth) { ++depth_; }
    ~Nesting() { --depth_; }
    size_t& depth_;
  };
  // --- rules: those that call each other together, those that they call before them (Tarjan's strongly connected components) ---
  struct Rule {
    Part part;
    uint32_t index = 0, low = 0;  // of the search; 0: not met
    bool open = false;
  };
  const Part& of_rule(uint32_t rule);
  void connect(uint32_t rule);
  NodeId body(uint32_t rule);
  std::vector<uint32_t> callees(uint32_t rule);
  void solve(const std::vector<uint32_t>& rules, bool loops);
  void forget();

  ByteAutomaton& bytes_;
  const Vocabulary& vocabulary_;
  Lengths& lengths_;
  const RareBytes* rare_ = nullptr;
  Pace pace_{bytes_.budget().seconds, "what completes texts behind a token"};
  std::unordered_map<NodeId, Part> parts_;
  using Bounds = std::tuple<uint32_t, uint32_t, uint32_t>;  // what is left of them, and how many there may be
  std::map<Bounds, Options> options_;
  std::unordered_map<uint32_t, uint32_t> words_;  // by lexicon: the most that is missing to the end of a word
  std::unordered_map<uint32_t, std::vector<Part>> machines_;  // by state
  size_t exploring_ = 0;
  std::atomic<size_t> held_{0};
  std::vector<Rule> rules_;
  std::vector<uint32_t> open_;
  uint32_t met_ = 0;
  bool solving_ = false;
  std::vector<NodeId> passing_;  // parts that hold for this round only
  std::vector<Bounds> passing_options_;
};

}  // namespace tokenfst
