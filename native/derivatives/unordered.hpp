// Members in any order with separators between them: each option at most once, some of them exactly once.
//
// The options are one union T = body_0·Tag 0 | body_1·Tag 1 | ... whose derivatives are computed once, whatever was
// used before. In a node Unordered(t, left, low, high), t is the derivative of T by the part of a member that has been
// read, and Tag k stands for the expression after option k: the end, or a separator and a further member. The tag of a
// used option stands for the empty language. So of the 2^n sets of used options only those are created that texts lead
// to, and each costs one node for every derivative of T that is walked with it. This form is kept while several options
// are possible; parts that all of them begin with are moved in front of it. Tags are replaced by the expressions that
// they stand for when only one option is possible, when a tag is reached, or when a call was unfolded (whose border the
// settler must see); the tag of a repeatable member is replaced at once.
//
// The options that are left are a set with a number (option_sets.hpp). Whether the bounds can be kept follows from two
// counts, the available options and the required ones among them, without a search. Limit: while several options read the
// same text, each set that may have been used is a member of a union. So n equal options make up to 2^n sets, and the
// budget raises.
//
// Threads. Several objects, each used by one thread, may share their sets: see node_store.hpp.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "expressions/arena.hpp"
#include "derivatives/option_sets.hpp"

namespace tokenfst {

class Unordered {
 public:
  using Members = OptionSets::Members;
  using Left = OptionSets::Left;
  // The parts of a node, for computing least lengths.
  struct Demand {
    NodeId rest;  // t
    NodeId separator;
    std::vector<NodeId> bodies;  // by tag; kEmpty: used
    std::vector<bool> possible;  // by tag: whether it may be the member that is being read
    uint32_t required;           // tags below this are required
    uint32_t low;
    bool repeats;  // whether the last body is `other`
    bool counts;
  };

  explicit Unordered(Arena& arena) : arena_(arena) {}
  // For another arena over the same nodes, used by another thread. Call it after the program has been read.
  Unordered(Arena& arena, const Unordered& other) : arena_(arena), sets_(other.sets_) {}

  // Call this before others are made from this one.
  void share() {
    if (sets_) sets_->share();
  }

  // The expression of `low` to `high` members. The first `required` options are required. `other`: the repeatable member, or kEmpty;
  // `counts`: whether it counts towards `low`. Bodies must not be nullable.
  NodeId make(NodeId separator, std::vector<NodeId> options, uint32_t required, NodeId other, bool counts, uint32_t low, uint32_t high) {
    if (std::any_of(options.begin(), options.begin() + required, [](NodeId body) { return body == kEmpty; })) return kEmpty;
    std::erase(options, kEmpty);
    Members made{static_cast<uint32_t>(options.size()), required, separator, std::move(options)};
    made.counts = counts;
    if (other != kEmpty) made.bodies.push_back(other);
    if (separator == kEmpty) high = std::min(high, 1u);
    std::vector<NodeId> parts;
    parts.reserve(made.bodies.size());
    for (uint32_t k = 0; k < made.bodies.size(); ++k)
      parts.push_back(arena_.concat(made.bodies[k], arena_.node({Kind::Tag, true, true, 0, 0, k, 0, 0, 0})));
    made.all = arena_.any_of(parts);
    auto look = [&](NodeId id) {
      made.certain &= arena_[id].certain;
      made.traits |= arena_[id].traits;
    };
    std::ranges::for_each(made.bodies, look);
    if (separator != kEmpty) look(separator);
    if (made.repeats() && high == kUnbounded) made.traits |= kHasLoop;
    while (made.options > uint64_t{64} << made.depth) ++made.depth;
    if (!sets_) sets_ = std::make_shared<OptionSets>(), owns_sets_ = true;
    const uint32_t number = sets_->add(std::move(made));
    const Members& members = sets_->members(number);
    const bool none = low == 0 && required == 0;
    if (high == 0 || high < low) return none && high == 0 ? kEpsilon : kEmpty;
    if (members.bodies.empty()) return none ? kEpsilon : kEmpty;
    return arena_.either(none ? kEpsilon : kEmpty, first(sets_->all(number), low, high));
  }

  // The rest t with these options left, and with bounds on the number of members, including the one that is being read.
  NodeId resolved(NodeId rest, uint32_t left, uint32_t low, uint32_t high) {
    check_stack();
    arena_.tick();
    std::vector<NodeId> heads;
    for (; arena_[rest].kind == Kind::Concat; rest = arena_[rest].b) heads.push_back(arena_[rest].a);
    NodeId made = arena_[rest].kind == Kind::Tag ? after_member(arena_[rest].a, left, low, high) : branches(rest, left, low, high);
    while (!heads.empty()) {
      made = arena_.concat(heads.back(), made);
      heads.pop_back();
    }
    return made;
  }

  // For a place within the options of an Unordered node: whether a possible member continues there, and whether one of
  // these surely has a word.
  std::pair<bool, bool> leads_on(NodeId rest, const Node& within) {
    const auto [found, certain] = ways(rest, within.b, within.low, within.high);
    return {found > 0, certain};
  }

  // The parts of an Unordered node.
  Demand demand(NodeId id) const {
    const Node& node = arena_[id];
    const Left left = sets_->left(node.b);
    const Members& members = sets_->members(left.members);
    Demand out{node.a, members.separator, members.bodies, {}, members.required, node.low, members.repeats(), members.counts};
    for (uint32_t tag = 0; tag < members.bodies.size(); ++tag) {
      out.possible.push_back(possible(members, left, tag, node.low, node.high));
      if (tag < members.options && !sets_->has(left, tag)) out.bodies[tag] = kEmpty;
    }
    return out;
  }

  // The union of all options of a node: a name that does not change while they are read.
  NodeId origin(NodeId id) const { return members_of(arena_[id].b).all; }
  // The same for the members that were made last.
  NodeId latest() const { return sets_->latest().all; }

  // Calls f with numbers that identify the options left to a node, the same in every process that read the same
  // program.
  template <class F>
  void each_number_left(uint32_t left, F&& f) const {
    f(sets_->left(left).members);
    sets_->each_leaf(sets_->left(left), f);
  }

  // In bytes. Shared sets are counted by the object that made them.
  size_t memory() const { return (owns_sets_ ? sets_->memory() : 0) + tags_bytes_; }

 private:
  const Members& members_of(uint32_t left) const { return sets_->members(sets_->left(left).members); }

  // The tags that a place of T leads to, ascending, each with whether words surely lead to it.
  using Tags = std::vector<std::pair<uint32_t, bool>>;

  // At least one member, with these options left. Bounds without effect are removed, so that equal languages are equal
  // nodes. The node is not resolved further before a byte is read, because a repeatable member leads back here.
  NodeId first(uint32_t left, uint32_t low, uint32_t high) {
    const Members& members = members_of(left);
    if (low <= std::max(sets_->left(left).required, uint32_t{members.counts})) low = 0;
    if (!members.repeats() && high >= sets_->left(left).options) high = kUnbounded;
    auto [found, certain] = ways(members.all, left, low, high);
    return found == 0 ? kEmpty : node(members.all, left, low, high, certain);
  }

  // What follows the member `tag`.
  NodeId after_member(uint32_t tag, uint32_t before, uint32_t low, uint32_t high) {
    const Left old = sets_->left(before);
    const Members& members = sets_->members(old.members);
    if (!possible(members, old, tag, low, high)) return kEmpty;
    if (low > 0 && (tag < members.options || members.counts)) --low;
    if (high != kUnbounded) --high;
    uint32_t after = before;
    if (tag < members.options) after = arena_.exclusively([&] { return sets_->without(before, tag); });
    const Left now = sets_->left(after);
    const NodeId separator = members.separator;
    NodeId more = high == 0 || (now.options == 0 && !members.repeats()) ? kEmpty : first(after, low, high);
    return arena_.either(now.required == 0 && low == 0 ? kEpsilon : kEmpty, arena_.concat(separator, more));
  }

  // Whether after a member with this tag the bounds can be kept. If all parts have words, the language is then not
  // empty.
  bool possible(const Members& members, const Left& left, uint32_t tag, uint32_t low, uint32_t high) const {
    const bool option = tag < members.options;
    if (option && !sets_->has(left, tag)) return false;
    const uint32_t more = left.options - option, needed = left.required - (tag < members.required);
    const uint32_t least = low - (low > 0 && (option || members.counts));
    if (std::max(needed, least) > (high == kUnbounded ? kUnbounded : high - 1)) return false;
    return (members.repeats() && members.counts) || least <= more;
  }

  // The rest t as resolved() makes it, for a union.
  NodeId branches(NodeId rest, uint32_t left, uint32_t low, uint32_t high) {
    if (const SplitBranches apart = split_branches(rest, sets_->left(left).members); !apart.others.empty()) {
      std::vector<NodeId> parts;
      parts.reserve(apart.others.size() + 1);
      for (NodeId branch : apart.others) parts.push_back(resolved(branch, left, low, high));
      parts.push_back(apart.options == kEmpty ? kEmpty : resolved(apart.options, left, low, high));
      return arena_.any_of(parts);
    }
    auto [found, certain] = ways(rest, left, low, high);
    if (found == 0) return kEmpty;
    if (found > 1 && !arena_[rest].nullable && !arena_[rest].has(kHasMark)) { return node(rest, left, low, high, certain); }
    std::vector<NodeId> parts, together;
    const std::vector<NodeId> branches(arena_.list(rest).begin(), arena_.list(rest).end());
    for (NodeId branch : branches) {
      if (found > 1 && !arena_[branch].nullable && !arena_[branch].has(kHasMark)) together.push_back(branch);
      else parts.push_back(resolved(branch, left, low, high));
    }
    if (!together.empty()) parts.push_back(resolved(arena_.any_of(together), left, low, high));
    return arena_.any_of(parts);
  }

  // The branches of a place that lead only to `other`, and the remaining branches. They are separated because the
  // former are often loops, whose masks are known wherever they stand alone.
  struct SplitBranches {
    std::vector<NodeId> others;
    NodeId options = kEmpty;
  };
  const SplitBranches& split_branches(NodeId rest, uint32_t members) {
    const uint64_t key = uint64_t{members} << 32 | rest;
    if (auto known = apart_.find(key); known != apart_.end()) return known->second;
    SplitBranches made;
    if (sets_->members(members).repeats()) {
      std::vector<NodeId> options;
      for (NodeId branch : arena_.list(rest)) {
        NodeId tail = branch;
        while (arena_[tail].kind == Kind::Concat) tail = arena_[tail].b;
        const bool other = arena_[tail].kind == Kind::Tag && arena_[tail].a == sets_->members(members).options;
        (other ? made.others : options).push_back(branch);
      }
      if (!made.others.empty()) made.options = arena_.any_of(options);
    }
    tags_bytes_ += 64 + made.others.size() * sizeof(NodeId);
    return apart_.emplace(key, std::move(made)).first->second;
  }

  NodeId node(NodeId rest, uint32_t left, uint32_t low, uint32_t high, bool certain) {
    const uint16_t traits = (arena_[rest].traits | members_of(left).traits) & ~kEndless;
    return arena_.node({Kind::Unordered, false, certain, traits, arena_[rest].depth, rest, left, low, high});
  }

  // How many tags of a place are possible (2: at least two), and whether it surely has a word.
  std::pair<int, bool> ways(NodeId rest, uint32_t left, uint32_t low, uint32_t high) {
    const Members& members = members_of(left);
    int found = 0;
    bool certain = false;
    for (auto& [tag, sure] : tags(rest)) {
      if (!possible(members, sets_->left(left), tag, low, high)) continue;
      found = std::min(found + 1, 2);
      certain |= sure && members.certain;
      if (found == 2 && (certain || !members.certain)) break;
    }
    return {found, certain};
  }

  const Tags& tags(NodeId rest) {
    if (auto known = tags_.find(rest); known != tags_.end()) return known->second;
    Tags found;
    std::vector<std::pair<NodeId, bool>> stack{{rest, true}};
    while (!stack.empty()) {
      auto [id, sure] = stack.back();
      stack.pop_back();
      for (; arena_[id].kind == Kind::Concat; id = arena_[id].b) sure &= arena_[arena_[id].a].certain;
      if (arena_[id].kind == Kind::Tag) found.emplace_back(arena_[id].a, !sure);
      else
        for (NodeId branch : arena_.list(id)) stack.emplace_back(branch, sure);
      arena_.tick();
    }
    // Among the ways to one tag, sure ones come first.
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end(), [](auto& x, auto& y) { return x.first == y.first; }), found.end());
    for (auto& [tag, sure] : found) sure = !sure;
    found.shrink_to_fit();
    tags_bytes_ += 64 + found.size() * sizeof(Tags::value_type);
    return tags_.emplace(rest, std::move(found)).first->second;
  }

  Arena& arena_;
  std::shared_ptr<OptionSets> sets_;  // if there are any; of all arenas over the same nodes
  bool owns_sets_ = false;
  std::unordered_map<NodeId, Tags> tags_;
  std::unordered_map<uint64_t, SplitBranches> apart_;
  size_t tags_bytes_ = 0;
};

}  // namespace tokenfst
