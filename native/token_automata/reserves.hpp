// Reserves: upper bounds, from the form of an expression, of the bytes that complete a text after any one token.
//
// If at least that many tokens are left, all tokens fit, because every byte may be a token of its own. Then the mask
// within the limit is the whole mask, and no token is visited. For an expression and a number q of rare bytes
// (rare_bytes.hpp), `most[q]` bounds the least length of what is left after any prefix with at most q rare bytes,
// including the empty prefix:
//
//   most(a·b)[q] = max(most(a)[q] + least(b), most(b)[q - rare(a)]),   most(a|b)[q] = max(most(a)[q], most(b)[q])
//
// Here rare(a) is the least number of rare bytes in a word of a. So structure that lies deeper than one token can read
// does not count, and recursive rules have finite bounds, provided that each recursion reads a rare byte. If a recursion
// may read none, if a bound does not settle within kMostRounds rounds, or if an intersection has too many states, the
// bound is kUnreachable, and it must be decided in another way which tokens fit.
//
// Invariant: wherever one token leads, the length according to Lengths is at most the bound. Cost: O(1) for each new
// part; for an intersection, up to kMostExplored derivatives; for rules that call each other, a round over their bodies
// until nothing changes. Raises BudgetExceeded; results that were begun are then forgotten.
#pragma once

#include <atomic>

#include "byte_automata/lengths.hpp"
#include "vocabulary/vocabulary.hpp"

namespace tokenfst {

class Reserves {
 public:
  Reserves(ByteAutomaton& bytes, const Vocabulary& vocabulary, Lengths& lengths)
      : bytes_(bytes), vocabulary_(vocabulary), lengths_(lengths) {}

  // The bound of an expression, also of the bytes that complete it before any token. Under the owner's mutex.
  uint32_t of(NodeId id) { return found(id).most[vocabulary_.rare().most]; }
  // The least length of the expression's words. Under the owner's mutex.
  uint32_t needed(NodeId id) { return found(id).least; }
  // May be called at any time, by any thread.
  size_t memory() const { return held_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kColumns = RareBytes::kMost + 1, kMostExplored = 1024, kMostNested = 8, kMostRounds = 64;
  static constexpr uint32_t kMostWords = 256, kMostSteps = 512;

  struct Part {
    uint32_t least = 0, rare = 0;  // least length and least number of rare bytes of a word; kUnreachable: there is no word
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
  // For members in any order: while one is read, all other required members may be missing. If more members are needed,
  // each counts as much as the longest other one.
  struct Options {
    std::vector<uint32_t> sizes;  // the length with a separator, by tag; 0: not required
    uint32_t missing = 0;         // the total length of all required members
    Part begun;                   // the bound after a separator or inside a member, with everything that must follow
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
  // Rules. Strongly connected components of rules that call each other are solved together, after the rules that they
  // call (Tarjan).
  struct Rule {
    Part part;
    uint32_t index = 0, low = 0;  // of Tarjan's search; 0: not visited
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
  TimeLimit time_limit_{bytes_.budget().seconds, "what completes texts after a token"};
  std::unordered_map<NodeId, Part> parts_;
  using Bounds = std::tuple<uint32_t, uint32_t, uint32_t>;  // the members left, and how many there may be
  std::map<Bounds, Options> options_;
  std::unordered_map<uint32_t, uint32_t> words_;  // for each lexicon: the most bytes to the end of a word
  std::unordered_map<uint32_t, std::vector<Part>> machines_;  // for each state
  size_t exploring_ = 0;
  std::atomic<size_t> held_{0};
  std::vector<Rule> rules_;
  std::vector<uint32_t> open_;
  uint32_t met_ = 0;
  bool solving_ = false;
  std::vector<NodeId> passing_;  // parts that are valid in this round only
  std::vector<Bounds> passing_options_;
};

}  // namespace tokenfst
