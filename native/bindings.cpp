#include <nanobind/nanobind.h>

NB_MODULE(_native, m) { m.doc() = "tokenfst's native core"; }
