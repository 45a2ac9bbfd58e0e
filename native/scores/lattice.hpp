// Sums over the paths of an acyclic graph in the log semiring, and the share of each arc in them.
//
// States are numbered in topological order; paths begin at `start`. forward() computes for each state the log-sum of
// all paths to it. backward() computes the same from each state to an end, and the gradient of the total with respect
// to every weight. That gradient is the posterior of the arc: the share of the total that goes through it. Cost:
// O(arcs) exponentials each. Sums are computed in double precision, whatever the type of the weights is.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "scores/weighted_bytes.hpp"

namespace tokenfst {

// The graph. Invariant, which the caller checks: numbers are within bounds, and arcs lead to greater states.
struct Lattice {
  std::span<const int64_t> sources, targets;   // one entry for each arc
  std::span<const int64_t> entering, leaving;  // the numbers of the arcs, sorted by target, and by source
  std::span<const int64_t> enters, leaves;     // for each state, where its arcs begin in `entering` and `leaving`; and the end
  size_t start;
  size_t states() const { return enters.size() - 1; }
  size_t arcs() const { return sources.size(); }
};

// The log of the sum of e^value(k) for k from 0 to `count`, plus e^`rest`.
template <class Value>
double log_sum_of(size_t count, double rest, Value&& value) {
  if (count == 1 && rest == kMinusInfinity) return value(0);
  double most = rest;
  for (size_t k = 0; k < count; ++k) most = std::max(most, value(k));
  if (most == kMinusInfinity) return most;
  double sum = 0;
  for (size_t k = 0; k < count; ++k) sum += std::exp(value(k) - most);
  if (rest != kMinusInfinity) sum += std::exp(rest - most);
  return most + std::log(sum);
}

// One row of weights: writes the log-sums `alpha` of all paths to every state, and returns the total over all final states.
template <class T>
double lattice_forward(const Lattice& lattice, const T* weights, const T* finals, double* alpha) {
  const size_t states = lattice.states();
  for (size_t s = 0; s < states; ++s) {
    const auto begin = static_cast<size_t>(lattice.enters[s]), end = static_cast<size_t>(lattice.enters[s + 1]);
    alpha[s] = log_sum_of(end - begin, s == lattice.start ? 0.0 : kMinusInfinity, [&](size_t k) {
      const auto arc = static_cast<size_t>(lattice.entering[begin + k]);
      return alpha[lattice.sources[arc]] + static_cast<double>(weights[arc]);
    });
  }
  return log_sum_of(states, kMinusInfinity, [&](size_t s) { return alpha[s] + static_cast<double>(finals[s]); });
}

// One row of weights: writes the log-sums `beta` from each state to an end, and the gradients of `scale` times the total with
// respect to the weights of arcs and final states. Gradients are 0 if the total is -inf. beta(s) is the log of a sum of
// exponentials, one for each arc and one for the end; times a factor of the state, they are the posteriors.
template <class T>
void lattice_backward(const Lattice& lattice, const T* weights, const T* finals, const double* alpha, double total, double scale,
                      double* beta, T* of_weights, T* of_finals) {
  std::vector<double> onward;
  for (size_t s = lattice.states(); s-- > 0;) {
    const auto begin = static_cast<size_t>(lattice.leaves[s]), end = static_cast<size_t>(lattice.leaves[s + 1]);
    onward.assign(1, static_cast<double>(finals[s]));
    double most = onward[0], sum = 0;
    for (size_t k = begin; k < end; ++k) {
      const auto arc = static_cast<size_t>(lattice.leaving[k]);
      onward.push_back(static_cast<double>(weights[arc]) + beta[lattice.targets[arc]]);
      most = std::max(most, onward.back());
    }
    const bool some = most > kMinusInfinity && total > kMinusInfinity;
    if (most > kMinusInfinity) {
      for (double& each : onward) sum += each = std::exp(each - most);
    }
    beta[s] = most > kMinusInfinity ? most + std::log(sum) : most;
    const double factor = some ? scale * std::exp(alpha[s] + most - total) : 0;
    of_finals[s] = static_cast<T>(some ? factor * onward[0] : 0);
    for (size_t k = begin; k < end; ++k) of_weights[lattice.leaving[k]] = static_cast<T>(some ? factor * onward[k - begin + 1] : 0);
  }
}

}  // namespace tokenfst
