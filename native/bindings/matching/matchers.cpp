// Binds Matcher, and masks for batches of matchers.

#include <atomic>
#include <thread>

#include "bindings/bindings.hpp"
#include "matching/matcher.hpp"
#include "python/bitmask_buffer.hpp"
#include "python/calls.hpp"
#include "python/whole_numbers.hpp"
#include "threads/helpers.hpp"
#ifdef TOKENFST_STRESS
#include "bindings/matching/stress.hpp"
#endif

using namespace nanobind::literals;

namespace tokenfst {

namespace nb = nanobind;

namespace {

bool fill_row(Matcher& matcher, nb::object bitmask, WholeNumber given) {
  const int64_t index = given.read("Matcher.fill_next_token_bitmask", "index");
  uint32_t* row = BitmaskBuffer(bitmask, matcher.automaton()->masks().words()).row(index);
  if (const std::optional<bool> known = matcher.fill_known(row)) return *known;
  const LongCall call;
  return matcher.fill(row);
}

void traverse_draft_tree(Matcher& matcher, WholeNumbers children, WholeNumbers siblings, WholeNumbers tokens, nb::object bitmask) {
  const char* const name = "Matcher.traverse_draft_tree";
  const std::vector<int64_t> next_token = children.read(name, "next_token");
  const std::vector<int64_t> next_sibling = siblings.read(name, "next_sibling");
  const std::vector<int64_t> draft_tokens = tokens.read(name, "draft_tokens");
  size_t nodes = draft_tokens.size();
  if (next_token.size() != nodes || next_sibling.size() != nodes)
    throw Error(Fault::MaskBuffer, "the arrays of a draft tree must have one entry for each node, but their lengths are " +
                                       std::to_string(next_token.size()) + " (next_token), " + std::to_string(next_sibling.size()) +
                                       " (next_sibling) and " + std::to_string(nodes) + " (draft_tokens)");
  if (nodes == 0) return;
  BitmaskBuffer rows(bitmask, matcher.automaton()->masks().words());
  rows.row(static_cast<int64_t>(nodes) - 1);
  const LongCall call;
  matcher.traverse_draft_tree(next_token, next_sibling, draft_tokens, rows.row(0), rows.stride());
}

// The rows of one call of fill_bitmasks, which several threads share.
class Rows {
 public:
  using Row = std::pair<Matcher*, uint32_t*>;

  explicit Rows(std::vector<Row> rows) : rows_(std::move(rows)), unknown_(rows_.size()) {}

  // Copies the rows whose masks are known, on `threads` threads, each of which takes `kAtOnce` rows at a time.
  void fill_known(size_t threads) {
    share(threads, rows_.size(), kAtOnce, [&](size_t i) { unknown_[i] = !rows_[i].first->fill_known(rows_[i].second); });
    size_t left = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (unknown_[i]) rows_[left++] = rows_[i];
    }
    rows_.resize(left);
  }
  // Computes the other masks, each on one thread. If some raise, the rest is computed all the same, and one of the errors is
  // raised at the end. For the first 50 microseconds this thread works alone: most masks take a few microseconds, and waking a
  // thread takes more.
  void make(size_t threads) {
    const auto make_one = [&](size_t i) { rows_[i].first->fill(rows_[i].second); };
    std::exception_ptr failure;
    const auto alone_until = Call::Clock::now() + std::chrono::microseconds(50);
    size_t made = 0;
    while (made < rows_.size() && (threads <= 1 || rows_.size() - made == 1 || Call::Clock::now() < alone_until)) {
      try {
        make_one(made++);
      } catch (...) { failure = std::current_exception(); }
    }
    share(threads, rows_.size() - made, 1, [&](size_t i) { make_one(made + i); });
    if (failure) std::rethrow_exception(failure);
  }
  bool empty() const { return rows_.empty(); }

 private:
  static constexpr size_t kAtOnce = 8;

  // Calls row(i) for each i below `count` on `threads` threads, each of which takes `at_once` numbers at a time.
  template <class F>
  static void share(size_t threads, size_t count, size_t at_once, F&& row) {
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto some = [&] {
      for (size_t begin; (begin = next.fetch_add(at_once)) < count;) {
        for (size_t i = begin; i < std::min(count, begin + at_once); ++i) {
          try {
            row(i);
          } catch (...) {
            const std::lock_guard lock(failure_mutex);
            failure = std::current_exception();
          }
        }
      }
    };
    threads = std::min(threads, (count + at_once - 1) / at_once);
    if (threads > 1) threads = std::min<size_t>(threads, std::thread::hardware_concurrency());  // this is a system call: 5 microseconds
    if (threads <= 1) {
      some();
    } else {
      const auto begun = Call::begun();
      Helpers::share(threads - 1, [&] {
        const Call helping(begun);
        some();
      });
    }
    if (failure) std::rethrow_exception(failure);
  }

  std::vector<Row> rows_;
  std::vector<uint8_t> unknown_;  // a byte each, so that threads can write adjacent entries
};

// Of rows. If there are more, copying takes longer than releasing Python's lock: some 20 microseconds.
constexpr size_t kManyRows = 16;

// Fills rows of `bytes` bytes in all on up to `threads` threads. First copies the rows whose masks are known: a few of them on this
// thread, because waking a thread costs more; many on several threads. The caller keeps the matchers and the rows alive.
void fill_rows(std::vector<Rows::Row> given, size_t bytes, size_t threads) {
  constexpr size_t kPart = 1 << 23;  // bytes for one thread: less is copied before a second thread wakes up and shares the caches
  std::optional<LongCall> call;
  if (given.size() > kManyRows) call.emplace();
  Rows rows(std::move(given));
  rows.fill_known(call ? std::min(threads, bytes / kPart) : 1);
  if (rows.empty()) return;
  if (!call) call.emplace();
  rows.make(threads);
}

// Fills row i with the mask of matchers[i]. Raises TypeError for a None, and MaskBuffer.
void fill_bitmasks(std::vector<Matcher*> matchers, nb::object bitmask, uint32_t threads) {
  std::vector<Rows::Row> rows;
  std::optional<BitmaskBuffer> buffer;
  size_t words = 0;  // the words for which the buffer was checked
  size_t bytes = 0;
  for (size_t i = 0; i < matchers.size(); ++i) {
    if (!matchers[i]) throw nb::type_error("fill_bitmasks() takes matchers, not None");
    if (const size_t own = matchers[i]->automaton()->masks().words(); !buffer || own != words) buffer.emplace(bitmask, words = own);
    rows.emplace_back(matchers[i], buffer->row(static_cast<int64_t>(i)));
    bytes += words * 4;
  }
  fill_rows(std::move(rows), bytes, threads);
}

// Fills the masks of an engine's step: that of matchers[i] in row rows[i], or in row i. Everything is allowed in the row of a None,
// and in that of a text that is over, whose next token the engine discards. An object that is no native matcher fills its own
// row by its method `fill(bitmask, row)`.
void fill_step(nb::list given, nb::object bitmask, std::optional<std::vector<int64_t>> rows) {
  constexpr size_t kMostThreads = 64;  // as many as the machine has, at most
  const nb::tuple matchers(given);  // keeps the matchers alive while other threads of Python run
  const size_t count = matchers.size();
  if (rows && rows->size() != count) throw nb::value_error("fill_step() takes a row for each matcher");
  const BitmaskBuffer buffer(bitmask);
  std::vector<Rows::Row> native;
  std::vector<size_t> others;
  for (size_t i = 0; i < count; ++i) {
    const nb::handle each = matchers[i];
    uint32_t* const row = buffer.row(rows ? (*rows)[i] : static_cast<int64_t>(i));
    Matcher* matcher = nullptr;
    if (!each.is_none() && !nb::try_cast<Matcher*>(each, matcher, false)) {
      others.push_back(i);
      continue;
    }
    if (!matcher || matcher->is_over()) {
      std::memset(row, 0xff, buffer.words() * 4);
      continue;
    }
    buffer.check_words(matcher->automaton()->masks().words());
    if (count > kManyRows || !matcher->fill_known(row)) native.emplace_back(matcher, row);
  }
  if (!native.empty()) {
    const size_t bytes = native.size() * buffer.words() * 4;
    fill_rows(std::move(native), bytes, kMostThreads);
  }
  for (size_t i : others) matchers[i].attr("fill")(bitmask, rows ? (*rows)[i] : static_cast<int64_t>(i));
}

// In bytes: a call that copies or hashes all of a matcher releases Python's lock if the matcher has more.
constexpr size_t kMuch = 1 << 16;

std::string forced_bytes(Matcher& matcher) {
  const QuickCall call;
  return matcher.forced_bytes();
}

bool accept_token(Matcher& matcher, WholeNumber given) {
  const int64_t token = given.read("Matcher.accept_token", "token_id");
  const QuickCall call;
  return matcher.accept_token(token);
}

bool accept_tokens(Matcher& matcher, WholeNumbers given) {
  const std::vector<int64_t> tokens = given.read("Matcher.accept_tokens", "token_ids");
  const LongCall call;
  return matcher.accept_tokens(tokens);
}

bool accept_until_over(Matcher& matcher, WholeNumbers given) {
  const std::vector<int64_t> tokens = given.read("Matcher.accept_until_over", "token_ids");
  const QuickCall call;
  return matcher.accept_until_over(tokens);
}

size_t validate_tokens(Matcher& matcher, WholeNumbers given) {
  const std::vector<int64_t> tokens = given.read("Matcher.validate_tokens", "token_ids");
  const LongCall call;
  return matcher.validate_tokens(tokens);
}

void rollback(Matcher& matcher, WholeNumber given) {
  const int64_t count = given.read("Matcher.rollback", "num_tokens");
  if (count < 0) throw Error(Fault::Rollback, "cannot roll back a negative number of tokens");
  const QuickCall call;
  matcher.rollback(static_cast<size_t>(count));
}

// A limit of tokens, or None. Raises ArgumentTypeError or ArgumentValueError for what is no number of tokens.
std::optional<uint64_t> limit_of_tokens(const nb::object& given, const char* name) {
  if (given.is_none()) return std::nullopt;
  const nb::object whole = nb::module_::import_("tokenfst.common.arguments").attr("whole");
  return nb::cast<uint64_t>(whole("Matcher", name, given, 0));
}

void set_max_tokens_left(Matcher& matcher, nb::object left) {
  const std::optional<uint64_t> number = limit_of_tokens(left, "max_tokens_left");
  const QuickCall call;
  matcher.set_max_tokens_left(number);
}

void make_matcher(Matcher* matcher, nb::object given, nb::object max_new_tokens) {
  std::shared_ptr<TokenAutomaton> automaton;
  if (!nb::try_cast(given, automaton) || !automaton) {
    const nb::object refuse = nb::module_::import_("tokenfst.common.arguments").attr("refuse");
    refuse("Matcher", "automaton", given, "an automaton of the core (call automaton.matcher(max_new_tokens) of a compiled automaton)");
  }
  const std::optional<uint64_t> number = limit_of_tokens(max_new_tokens, "max_new_tokens");
  const LongCall call;
  new (matcher) Matcher(std::move(automaton), number);
}

}  // namespace

void bind_matchers(nb::module_& m) {
  nb::class_<Matcher>(m, "Matcher", R"(One decoding under a constraint: the configuration that the accepted tokens have led to.

Made by ``TokenAutomaton.matcher(max_new_tokens=None)``. The cost of a mask, a step or a
rollback does not depend on the length of the text; a step takes time proportional to the bytes of its token. One thread at a
time uses a matcher, others wait; threads may share the automaton.)")
      .def("__init__", &make_matcher, "automaton"_a.none(), "max_new_tokens"_a = nb::none(),
           nb::sig("def __init__(self, automaton: TokenAutomaton, max_new_tokens: int | None = None) -> None"))
      .def("accept_token", &accept_token, "token_id"_a.none(), nb::sig("def accept_token(self, token_id: int) -> bool"),
           R"(Advance by one token. Returns False, and changes nothing, if the token is not allowed.

Raises TokenIdError for a token outside the vocabulary, and TerminatedError after the end token.)")
      .def("accept_tokens", &accept_tokens, "token_ids"_a.none(),
           nb::sig("def accept_tokens(self, token_ids: collections.abc.Sequence[int]) -> bool"),
           "Advance by several tokens. Returns False, and changes nothing, if one of them is not allowed.")
      .def("accept_until_over", &accept_until_over, "token_ids"_a.none(),
           nb::sig("def accept_until_over(self, token_ids: collections.abc.Sequence[int]) -> bool"),
           R"(Advance by several tokens up to the end of the text; tokens after it are ignored.

Returns False if a token is not allowed; the tokens before it remain accepted.)")
      .def("validate_tokens", &validate_tokens, "token_ids"_a.none(),
           nb::sig("def validate_tokens(self, token_ids: collections.abc.Sequence[int]) -> int"),
           "The number of these tokens, from the first on, that could be accepted. The matcher does not change.")
      .def("fill_next_token_bitmask", &fill_row, "bitmask"_a.none(), "index"_a.none() = 0,
           nb::sig("def fill_next_token_bitmask(self, bitmask: object, index: int = 0) -> bool"),
           R"(Write the mask of the next token into row `index` of an int32 bitmask (batch, ceil(V / 32)): bit 1 = allowed.

Returns False if every token is allowed, so that there is nothing to mask. Raises MaskBufferError if the
buffer does not fit. A mask that was computed before costs one copy of the row.)")
      .def("traverse_draft_tree", &traverse_draft_tree, "next_token"_a.none(), "next_sibling"_a.none(), "draft_tokens"_a.none(),
           "bitmask"_a.none(),
           nb::sig("def traverse_draft_tree(self, next_token: collections.abc.Sequence[int], next_sibling: "
                   "collections.abc.Sequence[int], draft_tokens: collections.abc.Sequence[int], bitmask: object) -> None"),
           R"(Masks for a tree of draft tokens (speculative decoding): row i is the mask after the path to node i.

Arrays or lists of integers, with one entry for each node: the first child, the next sibling (-1: none), the token. Node 0 is the root: its token
is the last one accepted. Rows after a token that is not allowed are all zero. The matcher does not change.)")
      .def("forced_tokens", &Matcher::forced_tokens, nb::call_guard<LongCall>(),
           "The token ids that have no alternative, up to the next choice or the end of the text.")
      .def(
          "forced_bytes", [](Matcher& self) { return to_bytes(forced_bytes(self)); },
          "The bytes that every accepted text continues with (jump-forward decoding), however they are divided into tokens.")
      .def(
          "find_jump_forward_string",
          [](Matcher& self) {
            std::string text = forced_bytes(self);
            return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "ignore"));
          },
          "forced_bytes() as text, without an incomplete last character.")
      .def("rollback", &rollback, "num_tokens"_a.none() = 1, nb::sig("def rollback(self, num_tokens: int = 1) -> None"),
           "Undo the last tokens. Raises RollbackError if fewer were accepted.")
      .def(
          "fork",
          [](Matcher& self) {
            std::optional<LongCall> call;
            if (self.memory() > kMuch) call.emplace();
            return self.fork();
          },
          "An independent copy. Copies the history (4.5 bytes for each token, more if strings must differ) and the stacks.")
      .def_prop_ro("automaton", &Matcher::automaton, "The automaton object of the native core.")
      .def("reset", &Matcher::reset, nb::call_guard<QuickCall>(), "Return to the start of the text.")
      .def("is_accepting", &Matcher::is_accepting, "Whether the text so far is in the language.")
      .def("is_over", &Matcher::is_over, "Whether the end token was accepted, or the last token of `max_new_tokens`.")
      .def("is_terminated", &Matcher::is_terminated, "Whether the end token was accepted.")
      .def(
          "distance",
          [](Matcher& self) {
            const LongCall call;
            return self.distance();
          },
          "The least number of tokens, not counting the end token, that complete the text; an upper bound if there is a stack or if "
          "strings must differ. The first call visits the states that are reachable from here.")
      .def_prop_rw(
          "max_tokens_left", &Matcher::max_tokens_left, &set_max_tokens_left, nb::for_setter(nb::arg("left").none()),
          nb::for_setter(nb::sig("def max_tokens_left(self, left: int | None, /) -> None")),
          R"(The number of tokens that may still be accepted, including the end token; None: no limit. With n left, the mask allows only
tokens after which n - 1 more can complete the text. Setting it raises TokenLimitError if no accepted text fits.)")
      .def_prop_ro("num_tokens", &Matcher::num_tokens, "The number of accepted tokens, including the end token.")
      .def_prop_ro("tokens", &Matcher::tokens, "The tokens accepted so far.")
      .def_prop_ro("memory", &Matcher::memory, "Bytes in memory of this sequence, without the shared automaton.")
      .def_prop_ro(
          "state",
          [](const Matcher& self) {
            std::optional<LongCall> call;
            if (self.memory() > kMuch) call.emplace();
            return self.state();
          },
          "A number for the current position: where it is equal in a matcher and a fork of it, the same texts can follow.");
  m.def("watch_interrupts", &Interrupts::watch);
  m.def("lock_waits", [] {  // how often threads waited for a lock since the last call, the seconds in all, and the longest wait
    const LockWaits::Counts counts = LockWaits::take();
    return std::tuple(counts.number, counts.seconds, counts.longest);
  });
  m.def("fill_bitmasks", &fill_bitmasks, "matchers"_a, "bitmask"_a, "threads"_a);
  m.def("fill_step", &fill_step, "matchers"_a, "bitmask"_a, "rows"_a = nb::none());
#ifdef TOKENFST_STRESS
  bind_stress(m);
#endif
}

}  // namespace tokenfst
