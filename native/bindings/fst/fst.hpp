// Binds the room fst: a class for each semiring, `_native.Fst_standard` and so on, which automata/transducers uses.
//
// A Python object shares its machine with its copies, and with the calls that are reading it. A shared machine is copied before
// it is changed. So a call that has released Python's lock reads a machine that no other thread changes. Free-threaded Python
// has no such lock; there the handle has a lock of its own, held during a change, and while a call takes its share.
#pragma once

#include <memory>
#include <string>

#include "bindings/bindings.hpp"
#include "fst_operations/compose.hpp"
#include "fst/files.hpp"
#include "fst_operations/normalize.hpp"
#include "fst_operations/paths.hpp"
#include "fst_operations/properties.hpp"
#include "fst_operations/relations.hpp"
#include "fst_operations/rmepsilon.hpp"
#include "fst_selection/thresholds.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"
#include "support/counted.hpp"

namespace tokenfst {

// The budget of a construction: states, bytes, seconds.
using Limits = std::tuple<uint64_t, uint64_t, double>;

// The Python object of a machine.
template <class S>
class FstHandle {
 public:
  using M = fst::Machine<S>;
  using W = typename S::Weight;
  FstHandle() : machine_(std::make_shared<M>()) {}
  explicit FstHandle(M made) : machine_(std::make_shared<M>(std::move(made))) {}
  FstHandle(const FstHandle& other) : machine_(other.shared()) {}
  FstHandle(FstHandle&& other) noexcept : machine_(std::move(other.machine_)) {}
  // The machine; it does not change while the pointer is held.
  std::shared_ptr<const M> read() const { return shared(); }
  // Calls `change(machine)` with a machine that only this handle has.
  template <class Change>
  auto change(Change&& change) {
    const nanobind::ft_lock_guard lock(mutex_);
    if (machine_.use_count() > 1) machine_ = std::make_shared<M>(*machine_);
#ifdef Py_GIL_DISABLED
    else std::shared_ptr<M>(machine_).reset();  // whoever shared it has finished reading: this count is ordered after theirs
#endif
    return change(*machine_);
  }
  // Python's numbers as those of the machine. Raise FstIndex for a state that does not exist and for a number that is no label, and
  // FstWeight for a number that is no weight.
  static fst::Id state(const M& machine, int64_t s) {
    if (s < 0 || s >= machine.num_states()) {
      throw Error(Fault::FstIndex, "there is no state " + std::to_string(s) + ": the machine has " + std::to_string(machine.num_states()));
    }
    return static_cast<fst::Id>(s);
  }
  static fst::Id label(int64_t label) {
    if (label < 0 || label > INT32_MAX) throw Error(Fault::FstIndex, "a label is from 0 to 2^31 - 1, not " + std::to_string(label));
    return static_cast<fst::Id>(label);
  }
  static W weight(double given) {
    const W w = static_cast<W>(given);
    const bool lost = std::isfinite(given) && !std::isfinite(static_cast<double>(w));
    if (std::isnan(given) || lost || !S::member(w) || (sizeof(W) == 1 && given != static_cast<double>(w))) {
      throw Error(Fault::FstWeight, decimal(given) + " is no weight of this semiring");
    }
    return w;
  }

 private:
  std::shared_ptr<M> shared() const {
    const nanobind::ft_lock_guard lock(mutex_);
    return machine_;
  }

  mutable nanobind::ft_mutex mutex_;
  std::shared_ptr<M> machine_;
};

// Runs `work(meter)` without Python's lock; `what` is the name of the construction in errors.
template <class Work>
auto metered(const Limits& limits, const char* what, Work&& work) {
  const LongCall call;
  const Budget budget{std::get<0>(limits), std::get<1>(limits), std::get<2>(limits)};
  fst::Meter meter(budget, what);
  return work(meter);
}

template <class S>
void bind_fst_basics(nanobind::class_<FstHandle<S>>& c) {
  namespace nb = nanobind;
  using H = FstHandle<S>;
  using M = fst::Machine<S>;
  using W = typename S::Weight;
  c.def(nb::init<>())
      .def("copy", [](const H& h) { return H(h); })
      .def("num_states", [](const H& h) { return h.read()->num_states(); })
      .def("total_arcs", [](const H& h) { return h.read()->num_arcs(); })
      .def("memory", [](const H& h) { return h.read()->memory(); })
      .def("start", [](const H& h) { return h.read()->start(); })
      .def("set_start", [](H& h, int64_t s) { h.change([&](M& m) { m.set_start(H::state(m, s)); }); })
      .def("add_state", [](H& h) { return h.change([](M& m) { return m.add_state(); }); })
      .def("add_arc",
           [](H& h, int64_t s, int64_t ilabel, int64_t olabel, double w, int64_t next) {
             h.change([&](M& m) { m.add_arc(H::state(m, s), {H::label(ilabel), H::label(olabel), H::weight(w), H::state(m, next)}); });
           })
      .def("final",
           [](const H& h, int64_t s) {
             const auto m = h.read();
             return static_cast<double>(m->final(H::state(*m, s)));
           })
      .def("set_final", [](H& h, int64_t s, double w) { h.change([&](M& m) { m.set_final(H::state(m, s), H::weight(w)); }); })
      .def("num_arcs",
           [](const H& h, int64_t s) {
             const auto m = h.read();
             return m->arcs(H::state(*m, s)).size();
           })
      .def("arc",
           [](const H& h, int64_t s, size_t at) {
             const auto m = h.read();
             const auto arcs = m->arcs(H::state(*m, s));
             if (at >= arcs.size()) {
               const std::string count = counted(arcs.size(), "arc");
               throw nb::index_error(("there is no arc " + std::to_string(at) + ": state " + std::to_string(s) + " has " + count).c_str());
             }
             return std::tuple(arcs[at].ilabel, arcs[at].olabel, static_cast<double>(arcs[at].weight), arcs[at].nextstate);
           })
      .def("arcs",
           [](const H& h, int64_t s) {
             nb::list out;
             const auto m = h.read();
             for (const auto& arc : m->arcs(H::state(*m, s))) {
               out.append(nb::make_tuple(arc.ilabel, arc.olabel, static_cast<double>(arc.weight), arc.nextstate));
             }
             return out;
           })
      .def("clear_arcs",
           [](H& h, int64_t s, size_t last) {
             h.change([&](M& m) {
               const fst::Id state = H::state(m, s);
               const size_t count = m.arcs(state).size();
               m.shrink_arcs(state, last >= count ? 0 : count - last);
             });
           })
      .def("reserve", [](H& h, uint64_t states, uint64_t arcs) { h.change([&](M& m) { m.reserve(states, arcs); }); })
      .def_static("checked_weight", [](double w) { return static_cast<double>(H::weight(w)); })
      .def_static("zero", [] { return static_cast<double>(S::zero()); })
      .def_static("one", [] { return static_cast<double>(S::one()); })
      .def_static("plus", [](double a, double b) { return static_cast<double>(S::plus(H::weight(a), H::weight(b))); })
      .def_static("times", [](double a, double b) { return static_cast<double>(S::times(H::weight(a), H::weight(b))); })
      .def_static("divide",
                  [](double a, double b) {
                    const W w = S::divide(H::weight(a), H::weight(b));
                    if (!S::member(w))
                      throw Error(Fault::FstWeight, decimal(a) + " divided by " + decimal(b) + " is no weight of this semiring");
                    return static_cast<double>(w);
                  })
      .def("arrays",
           [](const H& h) {
             const auto m = h.read();
             std::vector<W> finals, weights;
             std::vector<int64_t> counts;
             std::vector<int32_t> ilabels, olabels, nexts;
             {
               const LongCall call;
               for (fst::Id s = 0; s < m->num_states(); ++s) {
                 finals.push_back(m->final(s));
                 counts.push_back(static_cast<int64_t>(m->arcs(s).size()));
                 for (const auto& arc : m->arcs(s)) {
                   ilabels.push_back(arc.ilabel);
                   olabels.push_back(arc.olabel);
                   weights.push_back(arc.weight);
                   nexts.push_back(arc.nextstate);
                 }
               }
             }
             const size_t n = finals.size(), a = nexts.size();
             return nb::make_tuple(to_numpy(std::move(finals), {n}), to_numpy(std::move(counts), {n}), to_numpy(std::move(ilabels), {a}),
                                   to_numpy(std::move(olabels), {a}), to_numpy(std::move(weights), {a}), to_numpy(std::move(nexts), {a}));
           })
      .def_static(
          "from_arrays",
          [](int64_t start, Array<W> finals, Array<int64_t> counts, Array<int32_t> ilabels, Array<int32_t> olabels, Array<W> weights,
             Array<int32_t> nexts, Limits limits) {
            const auto end = view(finals), w = view(weights);
            const auto narcs = view(counts);
            const auto in = view(ilabels), out = view(olabels), next = view(nexts);
            return metered(limits, "the arrays of a transducer", [&](fst::Meter& meter) {
              M m;
              if (narcs.size() != end.size() || in.size() != out.size() || in.size() != w.size() || in.size() != next.size())
                fst::refuse("the arrays of a transducer differ in length");
              meter.states(end.size());
              meter.bytes(end.size() * 24 + in.size() * sizeof(fst::Arc<W>));
              m.reserve(end.size(), in.size());
              size_t at = 0;
              for (size_t s = 0; s < end.size(); ++s) {
                if (!S::member(end[s]))
                  throw Error(Fault::FstWeight, "the final weight of state " + std::to_string(s) + " is no weight of this semiring");
                m.add_state(end[s]);
                if (narcs[s] < 0 || static_cast<uint64_t>(narcs[s]) > in.size() - at)
                  fst::refuse("the numbers of arcs of the states do not add up to the number of arcs");
                for (const size_t last = at + static_cast<size_t>(narcs[s]); at < last; ++at) {
                  if (next[at] < 0 || static_cast<size_t>(next[at]) >= end.size())
                    throw Error(Fault::FstIndex, "an arc of state " + std::to_string(s) + " leads to state " + std::to_string(next[at]) +
                                                     " of " + std::to_string(end.size()));
                  if (in[at] < 0 || out[at] < 0)
                    throw Error(Fault::FstIndex, "an arc of state " + std::to_string(s) + " has a label below 0");
                  if (!S::member(w[at]))
                    throw Error(Fault::FstWeight, "the weight of an arc of state " + std::to_string(s) + " is no weight of this semiring");
                  m.add_arc(static_cast<fst::Id>(s), {in[at], out[at], w[at], next[at]});
                }
                meter.step();
              }
              if (at != in.size()) fst::refuse("the numbers of arcs of the states do not add up to the number of arcs");
              if (start < -1 || start >= m.num_states()) throw Error(Fault::FstIndex, "the start is not a state: " + std::to_string(start));
              m.set_start(static_cast<fst::Id>(start));
              return H(std::move(m));
            });
          })
      .def("body",
           [](const H& h, bool is_vector, Limits limits) {
             const auto m = h.read();
             const std::string out = metered(limits, "the file of a transducer", [&](fst::Meter& meter) {
               return is_vector ? fst::FileBody<S>::vector(*m, meter) : fst::FileBody<S>::constant(*m, meter);
             });
             return nb::bytes(out.data(), out.size());
           })
      .def_static("from_body", [](nb::bytes data, size_t at, bool is_vector, int64_t start, int64_t states, int64_t arcs, Limits limits) {
        const std::string_view all{data.c_str(), data.size()};
        return metered(limits, "the file of a transducer",
                       [&](fst::Meter& meter) { return H(fst::FileBody<S>(all.substr(at), meter).read(is_vector, start, states, arcs)); });
      });
}

template <class S>
void bind_fst_operations(nanobind::class_<FstHandle<S>>& c) {
  namespace nb = nanobind;
  using H = FstHandle<S>;
  using M = fst::Machine<S>;
  using fst::Meter;
  c.def("union",
        [](const H& a, const H& b, Limits l) {
          return metered(l, "union", [&, x = a.read(), y = b.read()](Meter& m) { return H(fst::set_union(*x, *y, m)); });
        })
      .def("concat",
           [](const H& a, const H& b, Limits l) {
             return metered(l, "concat", [&, x = a.read(), y = b.read()](Meter& m) { return H(fst::concat(*x, *y, m)); });
           })
      .def("closure", [](const H& a, bool plus,
                         Limits l) { return metered(l, "closure", [&, x = a.read()](Meter& m) { return H(fst::closure(*x, plus, m)); }); })
      .def("reverse",
           [](const H& a, bool superinitial, Limits l) {
             return metered(l, "reverse", [&, x = a.read()](Meter& m) { return H(fst::reverse(*x, superinitial, m)); });
           })
      .def("connect",
           [](const H& a, Limits l) { return metered(l, "connect", [&, x = a.read()](Meter& m) { return H(fst::connect(*x, m)); }); })
      .def("topsort",
           [](const H& a, Limits l) {
             bool done = false;
             H out = metered(l, "topsort", [&, x = a.read()](Meter& m) { return H(fst::topsort(*x, done, m)); });
             return std::pair(out, done);
           })
      .def("arcsort",
           [](const H& a, bool by_output, Limits l) {
             return metered(l, "arcsort", [&, x = a.read()](Meter& m) {
               M out = *x;
               fst::arcsort(out, by_output, m);
               return H(std::move(out));
             });
           })
      .def("relabelled",
           [](const H& a, int sides, Limits l) {  // 0: invert, 1: project on the input, 2: on the output
             return metered(l, "relabelling", [&, x = a.read()](Meter& m) {
               M out = *x;
               for (fst::Id s = 0; s < out.num_states(); ++s) {
                 for (auto& arc : out.arcs(s)) {
                   if (sides == 0) std::swap(arc.ilabel, arc.olabel);
                   else if (sides == 1) arc.olabel = arc.ilabel;
                   else arc.ilabel = arc.olabel;
                 }
                 m.step(1 + out.arcs(s).size());
               }
               return H(std::move(out));
             });
           })
      .def("compose",
           [](const H& a, const H& b, int filter, bool trim, Limits l) {
             return metered(l, "compose", [&, x = a.read(), y = b.read()](Meter& m) {
               return H(fst::compose(*x, *y, static_cast<fst::Filter>(filter), trim, m));
             });
           })
      .def("difference",
           [](const H& a, const H& b, bool trim, Limits l) {
             return metered(l, "difference", [&, x = a.read(), y = b.read()](Meter& m) { return H(fst::difference(*x, *y, trim, m)); });
           })
      .def("shortestdistance",
           [](const H& a, bool backward, double delta, Limits l) {
             std::vector<typename S::Weight> out;
             metered(l, "shortestdistance", [&, x = a.read()](Meter& m) {
               for (const auto w : fst::shortest_distance(*x, backward, delta, m)) out.push_back(static_cast<typename S::Weight>(w));
             });
             const size_t n = out.size();
             return to_numpy(std::move(out), {n});
           })
      .def("rmepsilon",
           [](const H& a, bool trim, double threshold, int64_t nstate, double delta, Limits l) {
             const fst::Threshold<S> kept{H::weight(threshold), nstate};
             return metered(l, "rmepsilon", [&, x = a.read()](Meter& m) { return H(fst::rmepsilon(*x, trim, kept, delta, m)); });
           })
      .def("determinize",
           [](const H& a, int outputs, int64_t subsequential, bool increment, double threshold, int64_t nstate, double delta, Limits l) {
             const fst::Threshold<S> kept{H::weight(threshold), nstate};
             const auto kind = static_cast<fst::Outputs>(outputs);
             if (kind == fst::Outputs::Disambiguate) fst::require_path<S>("determinize(det_type=\"disambiguate\")");
             return metered(l, "determinize", [&, x = a.read()](Meter& m) {
               return H(fst::determinize(*x, kind, H::label(subsequential), increment, kept, delta, m));
             });
           })
      .def("synchronize",
           [](const H& a, Limits l) {
             return metered(l, "synchronize", [&, x = a.read()](Meter& m) { return H(fst::synchronize(*x, m)); });
           })
      .def("epsnormalize",
           [](const H& a, double delta, Limits l) {
             return metered(l, "epsnormalize", [&, x = a.read()](Meter& m) { return H(fst::epsnormalize(*x, delta, m)); });
           })
      .def("minimize",
           [](const H& a, double delta, bool allow_nondet, Limits l) {
             return metered(l, "minimize", [&, x = a.read()](Meter& m) { return H(fst::minimize(*x, delta, allow_nondet, m)); });
           })
      .def("push",
           [](const H& a, bool weights, bool labels, bool to_final, bool remove_total, bool remove_common, double delta, Limits l) {
             return metered(l, "push", [&, x = a.read()](Meter& m) {
               return H(fst::push(*x, weights, labels, to_final, remove_total, remove_common, delta, m));
             });
           })
      .def("reweight",
           [](const H& a, Array<double> potentials, bool to_final, Limits l) {
             const auto given = view(potentials);
             std::vector<typename S::Wide::Weight> wide;
             for (const double w : given) wide.push_back(static_cast<typename S::Wide::Weight>(H::weight(w)));
             return metered(l, "reweight", [&, x = a.read()](Meter& m) {
               if (wide.size() > static_cast<size_t>(x->num_states())) fst::refuse("reweight: there are more potentials than states");
               wide.resize(x->num_states(), S::Wide::zero());
               M out = *x;
               fst::reweight(out, wide, to_final, m);
               return H(std::move(out));
             });
           })
      .def("shortestpath",
           [](const H& a, uint64_t count, bool unique, double threshold, int64_t nstate, double delta, Limits l) {
             const fst::Threshold<S> kept{H::weight(threshold), nstate};
             return metered(l, "shortestpath",
                            [&, x = a.read()](Meter& m) { return H(fst::shortest_path(*x, count, unique, kept, delta, m)); });
           })
      .def("prune",
           [](const H& a, double threshold, int64_t nstate, Limits l) {
             const fst::Threshold<S> kept{H::weight(threshold), nstate};
             return metered(l, "prune", [&, x = a.read()](Meter& m) { return H(fst::prune(*x, kept, m)); });
           })
      .def("randgen",
           [](const H& a, uint64_t count, uint64_t seed, bool by_weight, uint64_t longest, Limits l) {
             return metered(l, "randgen",
                            [&, x = a.read()](Meter& m) { return H(fst::random_paths(*x, count, seed, by_weight, longest, m)); });
           })
      .def("equal",
           [](const H& a, const H& b, double delta) {
             const auto x = a.read(), y = b.read();
             const LongCall call;
             return fst::equal(*x, *y, delta);
           })
      .def("isomorphic",
           [](const H& a, const H& b, double delta, Limits l) {
             return metered(l, "isomorphic", [&, x = a.read(), y = b.read()](Meter& m) { return fst::isomorphic(*x, *y, delta, m); });
           })
      .def("equivalent",
           [](const H& a, const H& b, double delta, Limits l) {
             return metered(l, "equivalent", [&, x = a.read(), y = b.read()](Meter& m) { return fst::equivalent(*x, *y, delta, m); });
           })
      .def("properties",
           [](const H& a, Limits l) { return metered(l, "properties", [&, x = a.read()](Meter& m) { return fst::properties(*x, m); }); });
}

template <class S>
void bind_semiring(nanobind::module_& m, const char* name) {
  nanobind::class_<FstHandle<S>> c(m, name);
  bind_fst_basics<S>(c);
  bind_fst_operations<S>(c);
}

}  // namespace tokenfst
