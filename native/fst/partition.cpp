#include "fst/partition.hpp"

namespace tokenfst::fst {

namespace {

// Valmari's refinable partition: the elements 0..n-1 in sets; `mark` some elements, then `split` each set into its
// marked and its unmarked part. (Sets of transitions are called cords, as in Valmari's paper.)
class Refinable {
 public:
  explicit Refinable(size_t n) : elements(n), place_(n), set_of(n, 0), first(n + 1), past(n + 1), marked_(n + 1, 0) {
    for (size_t k = 0; k < n; ++k) elements[k] = place_[k] = static_cast<uint32_t>(k);
    count = n > 0;
    first[0] = 0;
    past[0] = static_cast<uint32_t>(n);
  }
  // Creates sets of elements with equal keys, which are below `limit`.
  template <class Key>
  void split_by(Id limit, Key&& key) {
    std::vector<uint32_t> begin(static_cast<size_t>(limit) + 1, 0);
    for (uint32_t e : elements) ++begin[key(e) + 1];
    count = 0;
    for (Id k = 0; k < limit; ++k) {
      if (begin[k + 1] == 0) {
        begin[k + 1] = begin[k];
        continue;
      }
      first[count] = begin[k];
      past[count++] = begin[k + 1] += begin[k];
    }
    for (uint32_t e = 0; e < elements.size(); ++e) place_[e] = begin[key(e)]++;
    for (uint32_t e = 0; e < place_.size(); ++e) elements[place_[e]] = e;
    for (uint32_t s = 0; s < count; ++s) {
      for (uint32_t k = first[s]; k < past[s]; ++k) set_of[elements[k]] = s;
    }
  }
  void mark(uint32_t e) {
    const uint32_t s = set_of[e], i = place_[e], j = first[s] + marked_[s];
    elements[i] = elements[j];
    place_[elements[i]] = i;
    elements[j] = e;
    place_[e] = j;
    if (!marked_[s]++) touched_.push_back(s);
  }
  void split() {
    while (!touched_.empty()) {
      const uint32_t s = touched_.back(), j = first[s] + marked_[s];
      touched_.pop_back();
      if (j == past[s]) {
        marked_[s] = 0;
        continue;
      }
      if (marked_[s] <= past[s] - j) {
        first[count] = first[s];
        past[count] = first[s] = j;
      } else {
        past[count] = past[s];
        first[count] = past[s] = j;
      }
      for (uint32_t i = first[count]; i < past[count]; ++i) set_of[elements[i]] = count;
      marked_[s] = marked_[count] = 0;
      ++count;
    }
  }

  std::vector<uint32_t> elements;

 private:
  std::vector<uint32_t> place_;

 public:
  std::vector<uint32_t> set_of, first, past;
  uint32_t count = 0;

 private:
  std::vector<uint32_t> marked_, touched_;
};

}  // namespace

std::vector<Id> acyclic_blocks(const LabelledGraph& graph, const std::vector<Id>& order, Meter& meter) {
  std::vector<Id> block(graph.size());
  std::vector<LabelledEdge> edges;
  Signatures known;
  for (Id s : order) {
    edges.assign(graph.of(s).begin(), graph.of(s).end());
    for (LabelledEdge& edge : edges) edge.to = block[edge.to];
    if (!std::is_sorted(edges.begin(), edges.end())) std::sort(edges.begin(), edges.end());
    known.sign(graph.kind[s], edges);
    block[s] = known.number();
    meter.step(1 + graph.of(s).size());
  }
  return block;
}

std::vector<Id> deterministic_blocks(const LabelledGraph& graph, Meter& meter) {
  const size_t n = graph.kind.size(), m = graph.edges.size();
  std::vector<uint32_t> tail(m), entering(m), begin(n + 1, 0);
  for (size_t s = 0; s < n; ++s) {
    for (uint64_t at = graph.begin[s]; at < graph.begin[s + 1]; ++at) {
      tail[at] = static_cast<uint32_t>(s);
      ++begin[graph.edges[at].to + 1];
    }
  }
  for (size_t s = 0; s < n; ++s) begin[s + 1] += begin[s];
  std::vector<uint32_t> at(begin.begin(), begin.end() - 1);
  for (uint32_t e = 0; e < m; ++e) entering[at[graph.edges[e].to]++] = e;
  Refinable blocks(n), cords(m);
  blocks.split_by(graph.kinds, [&](uint32_t s) { return graph.kind[s]; });
  cords.split_by(graph.labels, [&](uint32_t e) { return graph.edges[e].label; });
  // Every initial block is used as a splitter, because the graph may be incomplete: this separates states with an edge
  // of a label from those without.
  for (uint32_t b = 0, c = 0;;) {
    for (; b < blocks.count; ++b) {
      for (uint32_t i = blocks.first[b]; i < blocks.past[b]; ++i) {
        const uint32_t s = blocks.elements[i];
        for (uint32_t j = begin[s]; j < begin[s + 1]; ++j) cords.mark(entering[j]);
        meter.step(1 + begin[s + 1] - begin[s]);
      }
      cords.split();
    }
    if (c == cords.count) break;
    for (uint32_t i = cords.first[c]; i < cords.past[c]; ++i) blocks.mark(tail[cords.elements[i]]);
    meter.step(cords.past[c] - cords.first[c]);
    blocks.split();
    ++c;
  }
  return {blocks.set_of.begin(), blocks.set_of.end()};
}

std::vector<Id> blocks_by_rounds(const LabelledGraph& graph, Meter& meter) {
  std::vector<Id> block = graph.kind, next(graph.size());
  std::vector<LabelledEdge> edges;
  for (Id count = -1;;) {
    Signatures known;
    for (Id s = 0; s < graph.size(); ++s) {
      edges.assign(graph.of(s).begin(), graph.of(s).end());
      for (LabelledEdge& edge : edges) edge.to = block[edge.to];
      std::sort(edges.begin(), edges.end());
      known.sign(block[s], edges);
      next[s] = known.number();
      meter.step(1 + edges.size());
    }
    block = next;
    if (known.size() == count) return block;
    count = known.size();
  }
}

}  // namespace tokenfst::fst
