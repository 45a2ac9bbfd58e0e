// The module: its parts, and the mapping from errors of the core to Python exceptions.

#include "bindings/bindings.hpp"
#include "bindings/patterns/patterns.hpp"
#include "bindings/rules/rules.hpp"
#include "bindings/schemas/schemas.hpp"
#include "calls/budget.hpp"
#include "python/calls.hpp"

namespace nb = nanobind;
using namespace tokenfst;

namespace {

const char* class_of(Fault fault) {
  switch (fault) {
    case Fault::Constraint: return "ConstraintError";
    case Fault::TokenId: return "TokenIdError";
    case Fault::Terminated: return "TerminatedError";
    case Fault::Rollback: return "RollbackError";
    case Fault::TokenLimit: return "TokenLimitError";
    case Fault::MaskBuffer: return "MaskBufferError";
    case Fault::EmptyLanguage: return "EmptyLanguageError";
    case Fault::Nondeterministic: return "NondeterministicError";
    case Fault::Corrupt: return "ArtifactCorruptError";
    case Fault::Vocabulary: return "VocabularyError";
    case Fault::Logits: return "LogitsError";
    case Fault::FstOp: return "FstOpError";
    case Fault::FstIndex: return "FstIndexError";
    case Fault::FstIO: return "FstIOError";
    case Fault::FstWeight: return "FstBadWeightError";
  }
  return "TokenfstError";
}

void raise(const char* name, nb::object args) {
  nb::object type = nb::module_::import_("tokenfst.errors").attr(name);
  PyErr_SetObject(type.ptr(), args.ptr());
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "tokenfst's native core";
  QuickCall::set_up();
  nb::set_leak_warnings(false);  // objects in a cache at exit are not leaks
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Interrupted&) {
      if (PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);  // in the main thread, Python's own handler raises it
    } catch (const BudgetExceeded& e) { raise("BudgetExceeded", nb::make_tuple(e.resource, e.limit, e.where)); } catch (const Error& e) {
      raise(class_of(e.fault), nb::str(e.what()));
    }
  });
  bind_values(m);
  bind_patterns(m);
  bind_rules(m);
  bind_schemas(m);
  bind_byte_automata(m);
  bind_token_automata(m);
  bind_matchers(m);
  bind_devices(m);
  bind_fst_tropical(m);
  bind_fst_log(m);
  bind_fst_real(m);
  bind_fst_minmax(m);
  bind_fst_lazy_choices(m);
  bind_fst_lazy_sums(m);
  bind_scores(m);
}
