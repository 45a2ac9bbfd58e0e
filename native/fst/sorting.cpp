#include "fst/sorting.hpp"

#include <algorithm>

namespace tokenfst::fst {

void sort_keys(std::vector<SortKey>& keys) { std::sort(keys.begin(), keys.end()); }

}  // namespace tokenfst::fst
