// The states and arcs of OpenFst's binary files, version 2, little-endian: everything after the header and the symbol
// tables. A damaged file raises FstIO with the state and what is wrong with it.
//
// Vector: for each state a weight, the number of its arcs in 64 bits, and the arcs. Const: all states (weight, index of
// the first arc, number of arcs, of input epsilons and of output epsilons, 32 bits each), then all arcs. An arc is two
// labels, a weight and the next state; in const files with weights of 64 bits, four bytes of padding follow, as in the
// struct in memory. Each size is compared with the rest of the file before any memory is allocated for it.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "fst/machine.hpp"
#include "fst/meter.hpp"
#include "support/counted.hpp"

namespace tokenfst::fst {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

[[noreturn]] inline void refuse_file(const std::string& message) { throw Error(Fault::FstIO, message); }

// Writes the body of a file, or reads one. All functions are O(length of the body) and raise BudgetExceeded.
template <class S>
class FileBody {
 public:
  using W = typename S::Weight;
  static constexpr size_t kPadding = sizeof(W) == 8 ? 4 : 0;

  static std::string vector(const Machine<S>& machine, Meter& meter) {
    std::string out;
    const size_t state = sizeof(W) + 8, arc = 12 + sizeof(W);
    meter.bytes(machine.memory() + state * static_cast<uint64_t>(machine.num_states()) + arc * machine.num_arcs());
    out.reserve(state * static_cast<size_t>(machine.num_states()) + arc * machine.num_arcs());
    for (Id s = 0; s < machine.num_states(); ++s) {
      put(out, machine.final(s));
      put(out, static_cast<int64_t>(machine.arcs(s).size()));
      for (const auto& each : machine.arcs(s)) put_arc(out, each);
      meter.step(1 + machine.arcs(s).size());
    }
    return out;
  }
  static std::string constant(const Machine<S>& machine, Meter& meter) {
    std::string states, arcs;
    const size_t state = sizeof(W) + 16, arc = 12 + sizeof(W) + kPadding;
    meter.bytes(machine.memory() + 2 * (state * static_cast<uint64_t>(machine.num_states()) + arc * machine.num_arcs()));
    uint64_t place = 0;
    for (Id s = 0; s < machine.num_states(); ++s) {
      uint32_t inputs = 0, outputs = 0;
      for (const auto& each : machine.arcs(s)) {
        inputs += each.ilabel == 0;
        outputs += each.olabel == 0;
        put_arc(arcs, each);
        arcs.append(kPadding, '\0');
      }
      put(states, machine.final(s));
      put(states, static_cast<uint32_t>(place));
      put(states, static_cast<uint32_t>(machine.arcs(s).size()));
      put(states, inputs);
      put(states, outputs);
      place += machine.arcs(s).size();
      meter.step(1 + machine.arcs(s).size());
    }
    return states + arcs;
  }

  FileBody(std::string_view data, Meter& meter) : data_(data), meter_(meter) {}
  // Reads the machine, given the numbers of the file's header. In vector files `num_states` may be -1: all states up to the
  // end of the file. `num_arcs` counts only in const files.
  Machine<S> read(bool is_vector, int64_t start, int64_t num_states, int64_t num_arcs) {
    if (num_states < -1 || (num_states < 0 && !is_vector))
      refuse_file("the header has " + std::to_string(num_states) + " states: the file is damaged");
    if (num_states > static_cast<int64_t>(data_.size()))
      refuse_file("the header has " + std::to_string(num_states) + " states, more than the file has bytes: it is damaged or cut short");
    if (is_vector) read_vector(num_states);
    else read_constant(num_states, num_arcs);
    const Id n = out_.num_states();
    for (Id s = 0; s < n; ++s) check(s, n);
    if (start < -1 || start >= n)
      refuse_file("the start is state " + std::to_string(start) + " of " + std::to_string(n) + ": the file is damaged");
    out_.set_start(static_cast<Id>(start));
    return std::move(out_);
  }

 private:
  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void put_arc(std::string& out, const Arc<W>& arc) {
    put(out, arc.ilabel);
    put(out, arc.olabel);
    put(out, arc.weight);
    put(out, arc.nextstate);
  }
  template <class T>
  T take() {
    T value;
    if (data_.size() - at_ < sizeof value)
      refuse_file("the file ends in the middle of state " + std::to_string(out_.num_states()) + ": it is cut short");
    std::memcpy(&value, data_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  Arc<W> take_arc() {
    Arc<W> arc;
    arc.ilabel = take<Id>();
    arc.olabel = take<Id>();
    arc.weight = take<W>();
    arc.nextstate = take<Id>();
    return arc;
  }
  void read_vector(int64_t num_states) {
    while (num_states < 0 ? at_ < data_.size() : out_.num_states() < num_states) {
      const W final = take<W>();
      const int64_t count = take<int64_t>();
      const Id s = out_.num_states();
      if (count < 0 || static_cast<uint64_t>(count) > (data_.size() - at_) / (12 + sizeof(W))) {
        refuse_file("state " + std::to_string(s) + " has " +
                    (count < 0 ? std::to_string(count) + " arcs" : counted(static_cast<uint64_t>(count), "arc")) +
                    ", which the rest of the file does not hold: it is damaged or cut short");
      }
      out_.add_state(final);
      for (int64_t k = 0; k < count; ++k) out_.add_arc(s, take_arc());
      meter_.step(1 + static_cast<uint64_t>(count));
      meter_.made(out_, data_.size());
    }
    if (at_ != data_.size()) refuse_file("the last state is followed by " + counted(data_.size() - at_, "byte") + ": the file is damaged");
  }
  void read_constant(int64_t num_states, int64_t num_arcs) {
    const uint64_t state = sizeof(W) + 16, arc = 12 + sizeof(W) + kPadding, n = static_cast<uint64_t>(num_states);
    if (num_arcs < 0 || static_cast<uint64_t>(num_arcs) > data_.size() ||
        n * state + static_cast<uint64_t>(num_arcs) * arc != data_.size()) {
      refuse_file("the file does not have the length of " + std::to_string(num_states) + " states and " + std::to_string(num_arcs) +
                  " arcs: it is damaged or cut short");
    }
    meter_.states(n);
    meter_.bytes(data_.size() * 3);
    uint64_t place = 0;
    for (uint64_t s = 0; s < n; ++s) {
      at_ = s * state;
      out_.add_state(take<W>());
      const uint32_t begin = take<uint32_t>(), count = take<uint32_t>();
      if (begin != place || count > static_cast<uint64_t>(num_arcs) - place)
        refuse_file("state " + std::to_string(s) + " has arcs of other states: the file is damaged");
      at_ = n * state + place * arc;
      for (uint32_t k = 0; k < count; ++k) {
        out_.add_arc(static_cast<Id>(s), take_arc());
        at_ += kPadding;
      }
      place += count;
      meter_.step(1 + count);
    }
    if (place != static_cast<uint64_t>(num_arcs))
      refuse_file("the states have " + std::to_string(place) + " arcs and the header " + std::to_string(num_arcs) +
                  ": the file is damaged");
  }
  void check(Id s, Id n) {
    const auto name = [&] { return "state " + std::to_string(s); };
    if (!S::member(out_.final(s))) refuse_file("the final weight of " + name() + " is no weight of its semiring (such as NaN)");
    for (const auto& arc : out_.arcs(s)) {
      if (arc.nextstate < 0 || arc.nextstate >= n)
        refuse_file("an arc of " + name() + " leads to state " + std::to_string(arc.nextstate) + " of " + std::to_string(n) +
                    ": the file is damaged");
      if (arc.ilabel < 0 || arc.olabel < 0) refuse_file("an arc of " + name() + " has a label below 0");
      if (!S::member(arc.weight)) refuse_file("the weight of an arc of " + name() + " is no weight of its semiring (such as NaN)");
    }
  }

  const std::string_view data_;
  Meter& meter_;
  size_t at_ = 0;
  Machine<S> out_;
};

}  // namespace tokenfst::fst
