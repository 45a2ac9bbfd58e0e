// Binds weighted automata over bytes and lattices: `_native.WeightedBytes`, which decoding/scores uses,
// `_native.WeightedRules` for weighted grammars, and `_native.lattice_forward` and `lattice_backward`, which
// decoding/lattices calls after checking the numbers of its graphs.
#include "scores/lattice.hpp"
#include "bindings/bindings.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"
#include "scores/rule_chart.hpp"
#include "scores/token_scores.hpp"
#include "vocabulary/vocabulary.hpp"

namespace nb = nanobind;

namespace tokenfst {
namespace {

std::vector<Weighted> position_of(const WeightedBytes& machine, const Array<uint32_t>& states, const Array<double>& weights) {
  if (states.size() != weights.size()) throw Error(Fault::Constraint, "a position must have one weight for each of its states");
  std::vector<Weighted> made;
  for (size_t k = 0; k < states.size(); ++k) {
    if (states.data()[k] >= machine.num_states()) throw Error(Fault::Constraint, "a position has a state that the automaton does not have");
    made.push_back({states.data()[k], weights.data()[k]});
  }
  return made;
}

// Python's lock is released for work of more than kMuch units, some 20 microseconds. A unit is a word that is cleared before
// a text is read; a step from one state by one byte counts kStep units. The few bytes of a token are read faster than the lock is
// released and acquired again.
constexpr size_t kMuch = 1 << 16, kStep = 64;

// The graph of a lattice and its number of rows, of arrays that Python passed. Raises Constraint if the sizes of the weights do
// not match the graph.
template <class T>
struct LatticeArrays {
  Lattice lattice;
  size_t rows;
  LatticeArrays(const std::vector<Array<int64_t>>& graph, size_t start, const Array<T>& weights, const Array<T>& finals)
      : lattice{view(graph.at(0)), view(graph.at(1)), view(graph.at(2)), view(graph.at(3)), view(graph.at(4)), view(graph.at(5)), start},
        rows(finals.size() / lattice.states()) {
    if (finals.size() != rows * lattice.states() || weights.size() != rows * lattice.arcs()) {
      throw Error(Fault::Constraint, "the weights do not match the lattice in size: each row must have one weight for each of " +
                                         std::to_string(lattice.arcs()) + " arcs and one for each of " + std::to_string(lattice.states()) +
                                         " states");
    }
  }
};

template <class T>
void bind_lattice(nb::module_& m) {
  m.def(
      "lattice_forward",
      [](const std::vector<Array<int64_t>>& graph, size_t start, const Array<T>& weights, const Array<T>& finals) {
        const LatticeArrays<T> given(graph, start, weights, finals);
        const size_t states = given.lattice.states();
        std::vector<double> alpha(given.rows * states), totals(given.rows);
        {
          const LongCall call;
          for (size_t r = 0; r < given.rows; ++r) {
            totals[r] = lattice_forward(given.lattice, weights.data() + r * given.lattice.arcs(), finals.data() + r * states,
                                        alpha.data() + r * states);
          }
        }
        return nb::make_tuple(to_numpy(std::move(totals), {given.rows}), to_numpy(std::move(alpha), {given.rows, states}));
      },
      nb::arg("graph"), nb::arg("start"), nb::arg("weights"), nb::arg("finals"));
  m.def(
      "lattice_backward",
      [](const std::vector<Array<int64_t>>& graph, const Array<T>& weights, const Array<T>& finals, const Array<double>& alpha,
         const Array<double>& totals, const Array<double>& scales) {
        const LatticeArrays<T> given(graph, 0, weights, finals);
        const size_t states = given.lattice.states(), arcs = given.lattice.arcs();
        if (alpha.size() != finals.size() || totals.size() != given.rows || scales.size() != given.rows) {
          throw Error(Fault::Constraint, "the sums do not match the lattice in size");
        }
        std::vector<T> of_weights(given.rows * arcs), of_finals(given.rows * states);
        {
          const LongCall call;
          std::vector<double> beta(states);
          for (size_t r = 0; r < given.rows; ++r) {
            lattice_backward(given.lattice, weights.data() + r * arcs, finals.data() + r * states, alpha.data() + r * states,
                             totals.data()[r], scales.data()[r], beta.data(), of_weights.data() + r * arcs, of_finals.data() + r * states);
          }
        }
        return nb::make_tuple(to_numpy(std::move(of_weights), {given.rows, arcs}), to_numpy(std::move(of_finals), {given.rows, states}));
      },
      nb::arg("graph"), nb::arg("weights"), nb::arg("finals"), nb::arg("alpha"), nb::arg("totals"), nb::arg("scales"));
}

// The arrays of a RuleTable: the index of the first entry of each list, and the number of entries; the rules, targets and
// weights of the entries.
using TableArrays = std::tuple<Array<uint32_t>, Array<uint32_t>, Array<uint32_t>, Array<double>>;

RuleTable table_of(const TableArrays& arrays, size_t count, size_t rules, size_t states) {
  const auto& [offsets, numbers, targets, weights] = arrays;
  return {view(offsets), view(numbers), view(targets), view(weights), count, rules, states};
}

void bind_rules(nb::module_& m) {
  nb::class_<RuleChart>(m, "RuleChart", "The position of a text in a weighted grammar.")
      .def("key",
           [](const RuleChart& self) {
             const std::string key = self.key();
             return nb::bytes(key.data(), key.size());
           })
      .def_prop_ro("size", &RuleChart::size)
      .def_prop_ro("end", [](const RuleChart& self) { return self.at(self.last()).end; });
  nb::class_<WeightedRules>(m, "WeightedRules", "A weighted grammar without empty words, and its closures.")
      .def(
          "__init__",
          [](WeightedRules* self, const WeightedBytes& bytes, const Array<uint32_t>& rule_of, const Array<uint32_t>& starts,
             const Array<uint8_t>& reads, const TableArrays& calls, const TableArrays& predicts, const TableArrays& corners,
             const TableArrays& units, const TableArrays& first, uint32_t root, double empty) {
            const size_t states = bytes.num_states(), rules = starts.size();
            if (reads.size() != states)
              throw Error(Fault::Constraint, "a weighted grammar must say for each state whether it has byte arcs");
            WeightedRules made{
                bytes,
                {rule_of.data(), rule_of.data() + rule_of.size()},
                {starts.data(), starts.data() + rules},
                table_of(calls, states, rules, states),
                table_of(predicts, states, rules, states),
                table_of(corners, rules, rules, states),
                table_of(units, rules, rules, states),
                table_of(first, 1, rules, states),
                root,
                empty,
                {reads.data(), reads.data() + states},
                {},
            };
            made.check();
            new (self) WeightedRules(std::move(made));
          },
          nb::arg("bytes"), nb::arg("rule_of"), nb::arg("starts"), nb::arg("reads"), nb::arg("calls"), nb::arg("predicts"),
          nb::arg("corners"), nb::arg("units"), nb::arg("first"), nb::arg("root"), nb::arg("empty"))
      .def(
          "start", [](const WeightedRules& self, uint64_t limit) { return first_chart(self, limit); }, nb::arg("limit"))
      .def(
          "advance",
          [](const WeightedRules& self, const RuleChart& chart, nb::bytes data, uint64_t limit, double seconds) {
            RuleChart made = chart;
            double score;
            {
              const LongCall call;
              TimeLimit time_limit(seconds, "the chart of a weighted grammar");
              score = advance_chart(self, made, {data.c_str(), data.size()}, limit, time_limit);
            }
            return std::pair(std::move(made), score);
          },
          nb::arg("chart"), nb::arg("data"), nb::arg("limit"), nb::arg("seconds"))
      .def(
          "scores",
          [](const WeightedRules& self, const Vocabulary& vocabulary, bool initial, const RuleChart& chart, uint64_t limit,
             double seconds) {
            std::vector<float> scores(vocabulary.size(), -std::numeric_limits<float>::infinity());
            {
              const LongCall call;
              TimeLimit time_limit(seconds, "the scores of a vocabulary");
              rule_scores(self, chart, initial ? vocabulary.initial_trie() : vocabulary.trie(), scores, limit, time_limit);
            }
            const size_t count = scores.size();
            return to_numpy(std::move(scores), {count});
          },
          nb::arg("vocabulary"), nb::arg("initial"), nb::arg("chart"), nb::arg("limit"), nb::arg("seconds"));
}

}  // namespace

void bind_scores(nb::module_& m) {
  nb::class_<WeightedBytes>(m, "WeightedBytes", "A weighted automaton over bytes, with failure arcs.")
      .def(
          "__init__",
          [](WeightedBytes* self, const Array<double>& finals, const Array<uint32_t>& offsets, const Array<uint8_t>& labels,
             const Array<double>& weights, const Array<uint32_t>& targets, const Array<int32_t>& failures,
             const Array<double>& failure_weights) {
            new (self) WeightedBytes(
                {view(finals), view(offsets), view(labels), view(weights), view(targets), view(failures), view(failure_weights)});
          },
          nb::arg("finals"), nb::arg("offsets"), nb::arg("labels"), nb::arg("weights"), nb::arg("targets"), nb::arg("failures"),
          nb::arg("failure_weights"))
      .def_prop_ro("num_states", &WeightedBytes::num_states)
      .def_prop_ro("memory", &WeightedBytes::memory)
      .def(
          "advance",
          [](const WeightedBytes& self, const Array<uint32_t>& states, const Array<double>& weights, nb::bytes data) {
            std::vector<Weighted> at = position_of(self, states, weights);
            const std::string_view text(data.c_str(), data.size());
            std::vector<uint32_t> found;
            std::vector<double> sums;
            {
              std::optional<LongCall> call;
              if (self.num_states() + kStep * text.size() * at.size() > kMuch) call.emplace();
              WeightedSteps steps(self);
              for (size_t k = 0; k < text.size() && !at.empty(); ++k) {
                const size_t end = at.size();
                steps.step(at, 0, end, static_cast<uint8_t>(text[k]));
                at.erase(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(end));
              }
              std::ranges::sort(at, {}, &Weighted::state);
              for (const auto& [state, weight] : at) {
                found.push_back(state);
                sums.push_back(weight);
              }
            }
            const size_t count = at.size();
            return nb::make_tuple(to_numpy(std::move(found), {count}), to_numpy(std::move(sums), {count}));
          },
          nb::arg("states"), nb::arg("weights"), nb::arg("data"))
      .def(
          "scores",
          [](const WeightedBytes& self, const Vocabulary& vocabulary, bool initial, const Array<uint32_t>& states,
             const Array<double>& weights, double seconds) {
            const std::vector<Weighted> at = position_of(self, states, weights);
            std::vector<float> scores(vocabulary.size(), -std::numeric_limits<float>::infinity());
            {
              const LongCall call;
              TimeLimit time_limit(seconds, "the scores of a vocabulary");
              token_scores(self, initial ? vocabulary.initial_trie() : vocabulary.trie(), at, scores, time_limit);
            }
            const size_t count = scores.size();
            return to_numpy(std::move(scores), {count});
          },
          nb::arg("vocabulary"), nb::arg("initial"), nb::arg("states"), nb::arg("weights"), nb::arg("seconds"));
  bind_rules(m);
  bind_lattice<float>(m);
  bind_lattice<double>(m);
}

}  // namespace tokenfst
