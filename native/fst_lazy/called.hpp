// Lazy replacement: an arc whose output is the label of a machine calls that machine. A state is a chain of calls, each
// with the state to return to, and a state of the machine that was called last. Machines may call themselves, also
// through others; then there are infinitely many states, and each costs what its machine's state costs.
#pragma once

#include "fst_operations/compose.hpp"
#include "fst_lazy/delayed.hpp"

namespace tokenfst::fst {

// Which labels a call and a return keep, on which side.
struct CallLabels {
  bool call_input, call_output, return_input, return_output;
  Id return_label;
};

template <class S>
class LazyReplacement final : public Delayed<S> {
 public:
  LazyReplacement(std::vector<std::pair<Id, LazyPtr<S>>> machines, CallLabels labels) : machines_(std::move(machines)), labels_(labels) {
    for (uint32_t k = 0; k < machines_.size(); ++k) called_.emplace(machines_[k].first, k);
  }
  Id start(Meter& meter) override {
    const Id start = machines_[0].second->start(meter);
    return start == kNone ? kNone : number(chain(kNone, 0, kNone), start);
  }
  void make(Id s, LazyState<S>& out, Meter& meter) override {
    const uint64_t place = states_.key(static_cast<size_t>(s));
    const Id chain_number = static_cast<Id>(place >> 32), state = static_cast<Id>(place & UINT32_MAX);
    const Call call = calls_[static_cast<size_t>(chain_number)];
    const StateView<S> view = machines_[call.machine].second->at(state, meter);
    if (view.is_final()) {
      if (call.outer == kNone) out.final = view.final;
      else
        out.arcs.push_back({labels_.return_input ? labels_.return_label : 0, labels_.return_output ? labels_.return_label : 0, view.final,
                            number(call.outer, call.back)});
    }
    for (const auto& arc : view.arcs) {
      const auto found = called_.find(arc.olabel);
      if (found == called_.end()) {
        out.arcs.push_back({arc.ilabel, arc.olabel, arc.weight, number(chain_number, arc.nextstate)});
        continue;
      }
      const Id inner = machines_[found->second].second->start(meter);
      if (inner == kNone) continue;
      out.arcs.push_back({labels_.call_input ? arc.ilabel : 0, labels_.call_output ? arc.olabel : 0, arc.weight,
                          number(chain(chain_number, found->second, arc.nextstate), inner)});
    }
  }
  uint64_t named() const override { return states_.size(); }
  uint64_t memory() const override { return states_.memory() + chains_.memory() + both_.memory() + calls_.size() * (sizeof(Call) + 16); }

 private:
  struct Call {
    Id outer;  // the chain of the caller, or kNone
    uint32_t machine;
    Id back;  // the state of the caller to return to
  };
  // Numbers chains; equal chains have equal numbers.
  Id chain(Id outer, uint32_t machine, Id back) {
    const Id above = chains_.number(static_cast<uint64_t>(static_cast<uint32_t>(outer)) << 32 | static_cast<uint32_t>(back), 0);
    const Id made = both_.number(static_cast<uint64_t>(static_cast<uint32_t>(above)) << 32 | machine, 0);
    if (static_cast<size_t>(made) == calls_.size()) calls_.push_back({outer, machine, back});
    return made;
  }
  Id number(Id chain_number, Id state) {
    return states_.number(static_cast<uint64_t>(chain_number) << 32 | static_cast<uint32_t>(state), 0);
  }

  const std::vector<std::pair<Id, LazyPtr<S>>> machines_;
  const CallLabels labels_;
  std::unordered_map<Id, uint32_t> called_;
  TupleTable chains_, both_, states_;
  std::vector<Call> calls_;
};

}  // namespace tokenfst::fst
