// Binds the masking loop over packed tables in host memory. Arrays are passed as addresses. Addresses and sizes are not checked
// here: decoding/device/automata/automaton.py checks tensors, and decoding/device/tables/tables.py creates tables.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>

#include "device/limit_layers.hpp"
#include "device/stacks.hpp"
#include "python/calls.hpp"
#include "python/numpy_arrays.hpp"

namespace tokenfst {

inline void bind_device(nanobind::module_& m) {
  namespace nb = nanobind;
  using namespace nb::literals;
  auto layer_arrays = [](TokenAutomaton& automaton, LimitLayers out) {
    const size_t states = out.offsets.size(), layers = out.layers.size() / 2, masks = out.mask_row.size(), flips = out.flips.size();
    const size_t words = automaton.masks().words(), rows = out.rows.size() / words;
    nb::dict result;
    result["layer_offsets"] = to_numpy(std::move(out.offsets), {states});
    result["layers"] = to_numpy(std::move(out.layers), {layers, 2});
    result["mask_row"] = to_numpy(std::move(out.mask_row), {masks});
    result["flip_offsets"] = to_numpy(std::move(out.flip_offsets), {masks + 1});
    result["flips"] = to_numpy(std::move(out.flips), {flips});
    result["rows"] = to_numpy(std::move(out.rows), {rows, words});
    return result;
  };
  m.def(
      "limit_layers",
      [layer_arrays](TokenAutomaton& automaton, uint64_t bytes, double seconds) {
        LimitLayers out;
        {
          const LongCall call;
          out = limit_layers(automaton, {UINT64_MAX, bytes, seconds});
        }
        return layer_arrays(automaton, std::move(out));
      },
      "automaton"_a, "bytes"_a, "seconds"_a,
      "The masks of a finished automaton under a limit of tokens: for each state an ascending list of pairs (least distance, mask).");
  m.def(
      "stack_layers",
      [layer_arrays](TokenAutomaton& automaton, std::vector<uint32_t> states, std::vector<uint32_t> masks, std::vector<uint32_t> offsets,
                     std::vector<uint32_t> answers, uint64_t bytes, double seconds) {
        LimitLayers out;
        {
          const LongCall call;
          const StackLeaves leaves{std::move(states), std::move(masks), std::move(offsets), std::move(answers)};
          check_leaves(automaton, leaves);
          out = stack_layers(automaton, leaves, {UINT64_MAX, bytes, seconds});
        }
        return layer_arrays(automaton, std::move(out));
      },
      "automaton"_a, "states"_a, "masks"_a, "offsets"_a, "answers"_a, "bytes"_a, "seconds"_a,
      "The same for a finished push-down automaton, for each leaf of its decision trees: a state, its mask, and the answers on the path.");

  m.def(
      "byte_tables",
      [](TokenAutomaton& automaton) {
        Tables tables;
        uint32_t inner_start;
        {
          const LongCall call;
          ByteAutomaton& bytes = automaton.bytes();
          tables = determinize(bytes);
          inner_start = numbering(bytes, reachable(bytes))[bytes.inner_start()];
        }
        const size_t states = tables.accepting.size(), width = tables.num_classes;
        nb::dict result;
        result["classes"] = to_numpy(std::vector<uint8_t>(tables.classes.begin(), tables.classes.end()), {256});
        result["table"] = to_numpy(std::move(tables.table), {states, width});
        result["accepting"] = to_numpy(std::move(tables.accepting), {states});
        result["start"] = tables.start;
        result["inner_start"] = inner_start;
        return result;
      },
      "automaton"_a, "The byte automaton of a token automaton without a stack, with every state but without masks.");

  auto table = []<class T>(uintptr_t address) { return reinterpret_cast<T*>(address); };
  auto logits_view = [](uintptr_t address, int type, size_t rows, size_t width, std::ptrdiff_t stride) {
    return LogitsView{reinterpret_cast<std::byte*>(address), static_cast<LogitsType>(type), rows, width, stride};
  };
  nb::class_<DeviceTables>(m, "DeviceTables", "Packed tables at addresses in host memory; the creator keeps them alive.")
      .def(
          "__init__",
          [table](DeviceTables* self, const std::array<uintptr_t, 9>& at, int32_t num_states, int32_t vocab_size, int32_t words) {
            new (self) DeviceTables{table.template operator()<const DeviceTables::StateRecord>(at[0]),
                                    table.template operator()<const int32_t>(at[1]),
                                    table.template operator()<const uint8_t>(at[2]),
                                    table.template operator()<const uint8_t>(at[3]),
                                    table.template operator()<const DeviceTables::TokenRecord>(at[4]),
                                    table.template operator()<const DeviceTables::MaskRecord>(at[5]),
                                    table.template operator()<const uint32_t>(at[6]),
                                    table.template operator()<const int32_t>(at[7]),
                                    table.template operator()<const DeviceTables::Layer>(at[8]),
                                    num_states,
                                    vocab_size,
                                    words};
          },
          "addresses"_a, "num_states"_a, "vocab_size"_a, "words"_a,
          "Addresses: states, table, classes, bytes, tokens, masks, rows, flips, layers.")
      .def(
          "advance",
          [table](const DeviceTables& self, uintptr_t states, uintptr_t tokens, uintptr_t out, size_t rows) {
            // A few rows take less time than releasing and re-acquiring the GIL.
            std::optional<nb::gil_scoped_release> nogil;
            if (rows > 1024) nogil.emplace();
            const auto* from = table.template operator()<const int32_t>(states);
            const auto* token = table.template operator()<const int64_t>(tokens);
            auto* to = table.template operator()<int32_t>(out);
            for (size_t r = 0; r < rows; ++r) to[r] = self.advance(from[r], token[r]);
          },
          "states"_a, "tokens"_a, "out"_a, "rows"_a)
      .def(
          "mask",
          [table, logits_view](const DeviceTables& self, uintptr_t states, uintptr_t each_left, int32_t left, uintptr_t logits, int type,
                               size_t rows, size_t width, std::ptrdiff_t stride, size_t threads) {
            nb::gil_scoped_release nogil;
            device_mask(self, table.template operator()<const int32_t>(states), {table.template operator()<const int32_t>(each_left), left},
                        logits_view(logits, type, rows, width, stride), threads);
          },
          "states"_a, "each_left"_a, "left"_a, "logits"_a, "type"_a, "rows"_a, "width"_a, "stride"_a, "threads"_a)
      .def(
          "greedy",
          [table, logits_view](const DeviceTables& self, uintptr_t states, uintptr_t each_left, int32_t left, uintptr_t logits, int type,
                               size_t rows, size_t width, std::ptrdiff_t stride, uintptr_t tokens, uintptr_t next, size_t threads) {
            nb::gil_scoped_release nogil;
            device_greedy(self, table.template operator()<const int32_t>(states),
                          {table.template operator()<const int32_t>(each_left), left}, logits_view(logits, type, rows, width, stride),
                          table.template operator()<int64_t>(tokens), table.template operator()<int32_t>(next), threads);
          },
          "states"_a, "each_left"_a, "left"_a, "logits"_a, "type"_a, "rows"_a, "width"_a, "stride"_a, "tokens"_a, "next"_a, "threads"_a)
      .def(
          "fill",
          [table](const DeviceTables& self, uintptr_t states, uintptr_t each_left, int32_t left, uintptr_t bitmask, size_t rows) {
            nb::gil_scoped_release nogil;
            const TokensLeft limits{table.template operator()<const int32_t>(each_left), left};
            const auto* at = table.template operator()<const int32_t>(states);
            for (size_t r = 0; r < rows; ++r)
              self.fill(self.mask(at[r], limits[r]), table.template operator()<uint32_t>(bitmask) + r * self.words);
          },
          "states"_a, "each_left"_a, "left"_a, "bitmask"_a, "rows"_a);

  nb::class_<DeviceStacks>(m, "DeviceStacks", "The tables of stacks beside those of states; the creator keeps both alive.")
      .def(
          "__init__",
          [table](DeviceStacks* self, const DeviceTables& tables, const std::array<uintptr_t, 5>& at, int32_t num_states, int32_t num_slots,
                  int32_t num_frames, int32_t capacity) {
            new (self) DeviceStacks{tables,
                                    table.template operator()<const DeviceStacks::Control>(at[0]),
                                    table.template operator()<const DeviceStacks::Action>(at[1]),
                                    table.template operator()<const DeviceStacks::Push>(at[2]),
                                    table.template operator()<const DeviceStacks::Slot>(at[3]),
                                    table.template operator()<const int32_t>(at[4]),
                                    num_states,
                                    num_slots,
                                    num_frames,
                                    capacity};
          },
          "tables"_a, "addresses"_a, "num_states"_a, "num_slots"_a, "num_frames"_a, "capacity"_a,
          "Addresses: controls, actions, pushes, comb, frames.")
      .def(
          "advance",
          [table](const DeviceStacks& self, uintptr_t states, uintptr_t tokens, uintptr_t out, size_t rows) {
            std::optional<nb::gil_scoped_release> nogil;
            if (rows > 256) nogil.emplace();
            const auto* from = table.template operator()<const int32_t>(states);
            const auto* token = table.template operator()<const int64_t>(tokens);
            auto* to = table.template operator()<int32_t>(out);
            for (size_t r = 0; r < rows; ++r) self.advance(from + r * self.width(), token[r], to + r * self.width());
          },
          "states"_a, "tokens"_a, "out"_a, "rows"_a)
      .def(
          "resting",
          [table](const DeviceStacks& self, uintptr_t states, uintptr_t out, uintptr_t lengths, size_t rows) {
            const auto* from = table.template operator()<const int32_t>(states);
            auto* to = table.template operator()<int32_t>(out);
            auto* length = table.template operator()<int32_t>(lengths);
            for (size_t r = 0; r < rows; ++r, from += self.width()) {
              int32_t below;
              to[r] = self.resting(from, below);
              if (length) length[r] = self.length(from, below);
            }
          },
          "states"_a, "out"_a, "lengths"_a, "rows"_a,
          "For each row, the state whose mask it has and, if the address is not 0, how many tokens complete what lies below.");
}

}  // namespace tokenfst
