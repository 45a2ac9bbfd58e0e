// The union of what an automaton learned, written as arrays.
#include "artifact/learned.hpp"

namespace tokenfst {

LearnedUnion::LearnedUnion(TokenAutomaton& automaton)
    : automaton_(automaton), bytes_(automaton.bytes()), masks_(automaton.masks().vocab_size()) {
  automaton.with_learned([&](const std::vector<std::shared_ptr<Learned>>& learned) {
    add_own();
    for (const auto& each : learned) {
      if (each->trusted()) add(*each);
    }
    write();
  });
}

void LearnedUnion::add_own() {
  const MaskPool& pool = automaton_.masks();
  DecisionTree* const tree = bytes_.is_pushdown() ? &automaton_.mask_tree() : nullptr;
  const DecisionTree::Reader reader = tree ? tree->reader() : DecisionTree::Reader{};
  std::unordered_map<uint32_t, Digest> frames;
  auto digest_of = [&](uint32_t frame) -> const Digest& {
    auto [known, fresh] = frames.try_emplace(frame);
    if (fresh) known->second = automaton_.digest_of_frame(frame);
    return known->second;
  };
  for (State state = 1; state < bytes_.num_states(); ++state) {
    time_limit_.step(256);
    const uint32_t root = automaton_.known_root(state), count = bytes_.stacks().count(state);
    const auto [distance, worst] = automaton_.known_distance(state);
    if (root == 0 && distance == kUnknown) continue;
    Known& known = known_[automaton_.digest_of(state)];
    add_distance(known, distance, worst);
    auto add_leaf = [&](const std::vector<DecisionTree::Step>& steps, uint32_t leaf) {
      const Mask& mask = pool[leaf];
      auto path = canonical_path(steps, count, digest_of);
      if (!path) return;
      hold(*path);
      known.leaves.push_back({std::move(*path), {mask.base, {mask.flips, mask.num_flips}}});
    };
    if (tree) tree->each_leaf(reader, root, count, add_leaf);
    else if (root != 0) add_leaf({}, root);
  }
}

void LearnedUnion::add(const Learned& learned) {
  const LearnedView& view = learned.view();
  // Where the answers of each inner node begin; they lie next to each other.
  std::vector<size_t> first(view.nodes.size() + 1, 0);
  for (size_t k = 0; k < view.answers.size(); k += Learned::kAnswerRow) ++first[view.answers[k] + 1];
  for (size_t node = 0; node < view.nodes.size(); ++node) first[node + 1] += first[node];
  for (size_t k = 0; k < view.states.size(); k += Learned::kStateRow) {
    time_limit_.step(256);
    const uint32_t* row = view.states.data() + k;
    const Learned::State state = Learned::state(row);
    Known& known = known_[Digest::of_words(row)];
    add_distance(known, state.distance, state.worst);
    std::vector<std::pair<uint32_t, CanonicalPath>> pending{{state.value, {}}};
    while (!pending.empty()) {
      time_limit_.step(256);
      auto [value, path] = std::move(pending.back());
      pending.pop_back();
      if (value & DecisionTree::kInner) {
        const uint32_t node = value & ~DecisionTree::kInner;
        for (size_t answer = first[node]; answer < first[node + 1]; ++answer) {
          const uint32_t* at = view.answers.data() + answer * Learned::kAnswerRow;
          pending.emplace_back(at[5], path);
          pending.back().second.emplace_back(view.nodes[node], Digest::of_words(at + 1));
          hold(pending.back().second);
        }
        held_ -= size_of(path);
      } else if (value != 0) {
        known.leaves.push_back({std::move(path), {learned.row(value - 1, automaton_.masks().words()), learned.flips(value - 1)}});
      }
    }
  }
}

void LearnedUnion::hold(const CanonicalPath& path) {
  held_ += size_of(path);
  if (held_ > bytes_.budget().bytes) throw BudgetExceeded("bytes", static_cast<double>(bytes_.budget().bytes), "what was learned");
}

void LearnedUnion::add_distance(Known& known, uint32_t distance, uint32_t worst) {
  if (distance == kUnknown) return;
  known.worst = known.distance == kUnknown ? worst : std::min(worst, known.worst);
  known.distance = known.distance == kUnknown ? distance : std::min(distance, known.distance);
}

void LearnedUnion::write() {
  for (auto& [digest, known] : known_) {
    time_limit_.step(64);
    std::ranges::stable_sort(known.leaves, {}, &Leaf::path);
    uint32_t root = 0;
    for (const Leaf& leaf : known.leaves) put(root, leaf);
    const auto words = digest.words();
    out_.states.insert(out_.states.end(), words.begin(), words.end());
    out_.states.insert(out_.states.end(), {root, known.distance, known.worst});
  }
  for (uint32_t node = 0; node < children_.size(); ++node) {
    for (const auto& [shown, value] : children_[node]) {
      const auto words = shown.words();
      out_.answers.push_back(node);
      out_.answers.insert(out_.answers.end(), words.begin(), words.end());
      out_.answers.push_back(value);
    }
  }
  masks_.write(out_);
}

void LearnedUnion::put(uint32_t& root, const Leaf& leaf) {
  std::vector<bool> used(leaf.path.size());
  uint32_t node = 0;
  Digest shown;
  bool at_root = true;
  for (size_t left = leaf.path.size();; --left) {
    const uint32_t value = at_root ? root : child(node, shown);
    if (value != 0 && !(value & DecisionTree::kInner)) return;  // already known after fewer answers
    if (left == 0) break;
    if (value == 0) {
      const size_t next = static_cast<size_t>(std::ranges::find(used, false) - used.begin());
      const uint32_t made = static_cast<uint32_t>(out_.nodes.size());
      out_.nodes.push_back(leaf.path[next].first);
      children_.emplace_back();
      attach(root, at_root, node, shown, made | DecisionTree::kInner);
      node = made;
    } else {
      node = value & ~DecisionTree::kInner;
    }
    size_t step = 0;
    while (step < leaf.path.size() && (used[step] || leaf.path[step].first != out_.nodes[node])) ++step;
    if (step == leaf.path.size()) return;  // this leaf did not inspect the node
    used[step] = true;
    shown = leaf.path[step].second;
    at_root = false;
  }
  if ((at_root ? root : child(node, shown)) != 0) return;  // earlier leaves inspected more
  attach(root, at_root, node, shown, masks_.number(leaf.set.base, leaf.set.flips) + 1);
}

uint32_t LearnedUnion::child(uint32_t node, const Digest& shown) const {
  const auto found = children_[node].find(shown);
  return found == children_[node].end() ? 0 : found->second;
}

void LearnedUnion::attach(uint32_t& root, bool at_root, uint32_t node, const Digest& shown, uint32_t value) {
  if (at_root) root = value;
  else children_[node][shown] = value;
}

}  // namespace tokenfst
