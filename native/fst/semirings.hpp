// Numeric semirings: the weights of arcs.
//
// A semiring is a struct of static functions over a plain value, so that a machine is an array of numbers, and each
// algorithm is compiled for each semiring. All of them are commutative, so no algorithm distinguishes left and right.
//
//   zero, one      the neutral elements of plus and times
//   kPath          whether the sum of two weights is always one of them; then `better` is the order that this defines
//   member(a)      whether a value is a weight of the semiring; NaN is not
//   divide(a, b)   the weight c with c * b = a; no member if there is none
//   star(a, out)   sets out to 1 + a + a*a + ... and returns true, if this sum exists; else returns false
//   near(a, b, d)  whether two weights are equal up to d
//   key(a, d)      a number that is equal for weights on the same point of a grid of step d; for probabilities a grid of
//                  their logarithms, because a step of d would make all small ones equal to zero
//   Wide           the same semiring over float64, in which sums are computed
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tokenfst::fst {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// A cycle whose weight is less than one by at most this counts as one: rounding alone makes such a difference in
// weights that sum to one.
constexpr double kAlmost = 1e-13;

// The point of the grid of step `delta` that is nearest to a value, as bits. Infinities are points of their own.
inline uint64_t grid(double value, double delta) {
  const double place = std::isfinite(value) ? std::floor(value / delta + 0.5) : value;
  return std::bit_cast<uint64_t>(place == 0 ? 0.0 : place);
}

// min and +: costs, of which a path has the sum. Zero is +inf.
template <class T>
struct Tropical {
  using Weight = T;
  using Wide = Tropical<double>;
  static constexpr bool kPath = true;
  static T zero() { return kInfinity<T>; }
  static T one() { return 0; }
  static T plus(T a, T b) { return b < a ? b : a; }
  static T times(T a, T b) { return a + b; }
  static T divide(T a, T b) { return a == zero() && b != zero() ? a : a - b; }
  static bool member(T a) { return !std::isnan(a) && a != -kInfinity<T>; }
  static bool better(T a, T b) { return a < b; }
  static bool near(T a, T b, double delta) { return a <= b + delta && b <= a + delta; }
  static uint64_t key(T a, double delta) { return grid(a, delta); }
  static bool star(T a, T& out) {
    out = one();
    return a >= 0;
  }
};

// -log(e^-a + e^-b) and +: negated logarithms of probabilities.
template <class T>
struct Log {
  using Weight = T;
  using Wide = Log<double>;
  static constexpr bool kPath = false;
  static T zero() { return kInfinity<T>; }
  static T one() { return 0; }
  static T plus(T a, T b) {
    if (a == zero()) return b;
    if (b == zero()) return a;
    return a > b ? b - std::log1p(std::exp(b - a)) : a - std::log1p(std::exp(a - b));
  }
  static T times(T a, T b) { return a + b; }
  static T divide(T a, T b) { return a == zero() && b != zero() ? a : a - b; }
  static bool member(T a) { return !std::isnan(a) && a != -kInfinity<T>; }
  static bool better(T a, T b) { return a < b; }
  static bool near(T a, T b, double delta) { return a <= b + delta && b <= a + delta; }
  static uint64_t key(T a, double delta) { return grid(a, delta); }
  static bool star(T a, T& out) {
    out = a == zero() ? one() : std::log(-std::expm1(-a));
    return a > kAlmost;
  }
};

// + and *: numbers from 0 on, such as probabilities.
template <class T>
struct Real {
  using Weight = T;
  using Wide = Real<double>;
  static constexpr bool kPath = false;
  static T zero() { return 0; }
  static T one() { return 1; }
  static T plus(T a, T b) { return a + b; }
  static T times(T a, T b) { return a * b; }
  static T divide(T a, T b) { return a / b; }
  static bool member(T a) { return a >= 0 && a < kInfinity<T>; }
  static bool better(T a, T b) { return a > b; }
  static bool near(T a, T b, double delta) { return std::abs(a - b) <= delta * std::max<T>(1, std::max(std::abs(a), std::abs(b))); }
  static uint64_t key(T a, double delta) { return grid(std::log(static_cast<double>(a)), delta); }
  static bool star(T a, T& out) {
    out = 1 / (1 - a);
    return 1 - a > kAlmost;
  }
};

// min and max: the least over all paths of the greatest weight of a path. Zero is +inf, One -inf.
template <class T>
struct MinMax {
  using Weight = T;
  using Wide = MinMax<double>;
  static constexpr bool kPath = true;
  static T zero() { return kInfinity<T>; }
  static T one() { return -kInfinity<T>; }
  static T plus(T a, T b) { return b < a ? b : a; }
  static T times(T a, T b) { return a < b ? b : a; }
  static T divide(T a, T b) { return a >= b ? a : std::numeric_limits<T>::quiet_NaN(); }
  static bool member(T a) { return !std::isnan(a); }
  static bool better(T a, T b) { return a < b; }
  static bool near(T a, T b, double delta) { return a == b || (a <= b + delta && b <= a + delta); }
  static uint64_t key(T a, double delta) { return grid(a, delta); }
  static bool star(T, T& out) {
    out = one();
    return true;
  }
};

// or and and: whether there is a path. Weights are 0 and 1.
struct Boolean {
  using Weight = uint8_t;
  using Wide = Boolean;
  static constexpr bool kPath = true;
  static uint8_t zero() { return 0; }
  static uint8_t one() { return 1; }
  static uint8_t plus(uint8_t a, uint8_t b) { return a | b; }
  static uint8_t times(uint8_t a, uint8_t b) { return a & b; }
  static uint8_t divide(uint8_t a, uint8_t b) { return b ? a : 2; }
  static bool member(uint8_t a) { return a < 2; }
  static bool better(uint8_t a, uint8_t b) { return a > b; }
  static bool near(uint8_t a, uint8_t b, double) { return a == b; }
  static uint64_t key(uint8_t a, double) { return a; }
  static bool star(uint8_t, uint8_t& out) {
    out = one();
    return true;
  }
};

}  // namespace tokenfst::fst
