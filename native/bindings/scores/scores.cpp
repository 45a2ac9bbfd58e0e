// The Python face of weighted automata over bytes and of lattices: `_native.WeightedBytes`, called by decoding/scores, and
// `_native.lattice_forward` and `lattice_backward`, called by decoding/lattices, which checks the numbers of its graphs.
#include "scores/lattice.hpp"
#include "bindings/bindings.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"
#include "scores/token_scores.hpp"
#include "vocabulary/vocabulary.hpp"

namespace nb = nanobind;

namespace tokenfst {
namespace {

std::vector<Weighted> position_of(const WeightedBytes& machine, const Array<uint32_t>& states, const Array<double>& weights) {
  if (states.size() != weights.size()) throw Error(Fault::Constraint, "a position has a weight for each of its states");
  std::vector<Weighted> made;
  for (size_t k = 0; k < states.size(); ++k) {
    if (states.data()[k] >= machine.num_states()) throw Error(Fault::Constraint, "a position in no state");
    made.push_back({states.data()[k], weights.data()[k]});
  }
  return made;
}

template <class T>
struct LatticeArrays {
  Lattice lattice;
  size_t rows;
  LatticeArrays(const std::vector<Array<int64_t>>& graph, size_t start, const Array<T>& weights, const Array<T>& finals)
      : lattice{view(graph.at(0)), view(graph.at(1)), view(graph.at(2)), view(graph.at(3)), view(graph.at(4)), view(graph.at(5)), start},
        rows(finals.size() / lattice.states()) {
    if (finals.size() != rows * lattice.states() || weights.size() != rows * lattice.arcs()) {
      throw Error(Fault::Constraint, "weights that do not fit the lattice");
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
          throw Error(Fault::Constraint, "sums that do not fit the lattice");
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
            WeightedSteps steps(self);
            for (size_t k = 0; k < data.size() && !at.empty(); ++k) {
              const size_t end = at.size();
              steps.step(at, 0, end, static_cast<uint8_t>(data.c_str()[k]));
              at.erase(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(end));
            }
            std::ranges::sort(at, {}, &Weighted::state);
            std::vector<uint32_t> found;
            std::vector<double> sums;
            for (const auto& [state, weight] : at) {
              found.push_back(state);
              sums.push_back(weight);
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
              Pace pace(seconds, "the scores of a vocabulary");
              token_scores(self, initial ? vocabulary.initial_trie() : vocabulary.trie(), at, scores, pace);
            }
            const size_t count = scores.size();
            return to_numpy(std::move(scores), {count});
          },
          nb::arg("vocabulary"), nb::arg("initial"), nb::arg("states"), nb::arg("weights"), nb::arg("seconds"));
  bind_lattice<float>(m);
  bind_lattice<double>(m);
}

}  // namespace tokenfst
