// Writes one machine over each arc type of OpenFst to a folder: the files in openfst_arc_types.json.
// g++ -std=c++17 openfst_arc_types.cc -lfst -ldl && ./a.out FOLDER
#include <fst/fst-decl.h>
#include <fst/fstlib.h>
#include <fst/expectation-weight.h>
#include <fst/power-weight.h>
#include <fst/product-weight.h>
#include <fst/lexicographic-weight.h>
#include <fst/signed-log-weight.h>
#include <fst/sparse-power-weight.h>
#include <iostream>
using namespace fst;
template <class A, bool CONST = true, class F>
void write(const std::string& dir, F weight, bool symbols = false) {
  VectorFst<A> f;
  for (int i = 0; i < 3; ++i) f.AddState();
  f.SetStart(0);
  f.AddArc(0, A(1, 2, weight(1), 1));
  f.AddArc(0, A(0, 3, weight(2), 2));
  f.AddArc(1, A(3, 0, A::Weight::One(), 2));
  f.AddArc(1, A(2, 2, weight(3), 1));
  f.SetFinal(2, weight(4));
  f.SetFinal(1, A::Weight::One());
  if (symbols) {
    SymbolTable t("letters");
    t.AddSymbol("eps", 0);
    t.AddSymbol("x", 1);
    t.AddSymbol("y", 2);
    f.SetInputSymbols(&t);
  }
  std::string name = A::Type();
  std::cout << name << " | weight " << A::Weight::Type() << std::endl;
  f.Write(dir + "/" + name + ".vector");
  if constexpr (CONST) ConstFst<A>(f).Write(dir + "/" + name + ".const");
}
template <class L>
StringWeight<int, L::value> str(int);
template <StringType S>
StringWeight<int, S> text(int i) {
  StringWeight<int, S> w;
  for (int k = 1; k < i; ++k) w.PushBack(10 * i + k);
  return w;
}
template <class W>
W num(int i) {
  return W(i * 0.25);
}
template <class A, GallicType G>
void gallic(const std::string& d) {
  using GA = GallicArc<A, G>;
  write<GA, false>(
      d, [](int i) { return GallicWeight<int, typename A::Weight, G>(text<GallicStringType(G)>(i), num<typename A::Weight>(i)); });
}
int main(int, char** v) {
  std::string d = v[1];
  gallic<StdArc, GALLIC_LEFT>(d);
  gallic<StdArc, GALLIC_RIGHT>(d);
  gallic<StdArc, GALLIC_RESTRICT>(d);
  gallic<StdArc, GALLIC_MIN>(d);
  gallic<LogArc, GALLIC_LEFT>(d);
  gallic<Log64Arc, GALLIC_LEFT>(d);
  {
    using G = GallicArc<StdArc, GALLIC>;
    using W = G::Weight;
    write<G, false>(
        d, [](int i) { return W(GallicWeight<int, TropicalWeight, GALLIC_RESTRICT>(text<STRING_RESTRICT>(i), num<TropicalWeight>(i))); });
  }
  write<StringArc<STRING_LEFT>, false>(d, [](int i) { return text<STRING_LEFT>(i); });
  write<StringArc<STRING_RIGHT>, false>(d, [](int i) { return text<STRING_RIGHT>(i); });
  write<StringArc<STRING_RESTRICT>, false>(d, [](int i) { return text<STRING_RESTRICT>(i); });
  using T = TropicalWeight;
  using L = LogWeight;
  using D = Log64Weight;
  write<LexicographicArc<T, T>>(d, [](int i) { return LexicographicWeight<T, T>(num<T>(i), num<T>(2 * i)); }, true);
  write<ProductArc<T, L>>(d, [](int i) { return ProductWeight<T, L>(num<T>(i), num<L>(2 * i)); });
  write<ProductArc<T, D>>(d, [](int i) { return ProductWeight<T, D>(num<T>(i), num<D>(2 * i)); });
  write<PowerArc<StdArc, 3>>(d, [](int i) {
    PowerWeight<T, 3> w;
    for (int k = 0; k < 3; ++k) w.SetValue(k, num<T>(i + k));
    return w;
  });
  write<PowerArc<Log64Arc, 2>>(d, [](int i) {
    PowerWeight<D, 2> w;
    for (int k = 0; k < 2; ++k) w.SetValue(k, num<D>(i + k));
    return w;
  });
  write<ExpectationArc<LogArc, L>>(d, [](int i) { return ExpectationWeight<L, L>(num<L>(i), num<L>(2 * i)); });
  write<ExpectationArc<Log64Arc, D>>(d, [](int i) { return ExpectationWeight<D, D>(num<D>(i), num<D>(2 * i)); });
  write<SignedLogArc>(d, [](int i) { return SignedLogWeight(T(i % 2 ? 1.0 : -1.0), num<L>(i)); });
  write<SignedLog64Arc>(d, [](int i) { return SignedLog64Weight(T(i % 2 ? 1.0 : -1.0), num<D>(i)); });
  write<MinMaxArc>(d, [](int i) { return num<MinMaxWeight>(i); });
  write<ReverseArc<GallicArc<StdArc, GALLIC_LEFT>>, false>(
      d, [](int i) { return GallicWeight<int, T, GALLIC_RIGHT>(text<STRING_RIGHT>(i), num<T>(i)); });
}
