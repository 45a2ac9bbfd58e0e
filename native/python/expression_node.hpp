// Nodes of expressions (tokenfst.automata.expressions.expression.Expr): Python objects whose fields the core reads in
// place.
//
// Front ends create thousands of nodes for one schema, and a program reads each of them. As instances of a class
// written in Python, they would cost more than everything else. So the base class is here, together with the functions
// that create most nodes (concatenations, unions, literals, sequences of optional parts). `Expr` is registered once, when
// its module is imported (`begin_nodes`).
//
// Garbage collection: a cycle always contains a VARIABLE, and the value of a node holds no nodes. So only VARIABLEs and
// nodes that contain one are tracked by the garbage collector, and tuples that contain tracked objects; the others are
// so many that traversing them would cause pauses.
//
// Threads: a node is changed only by the thread that makes it, before others see it. The exception is `known`, one byte, to
// which every thread writes the same.
#pragma once

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "programs/instructions.hpp"

namespace tokenfst {

namespace nb = nanobind;

struct ExprNode {
  static constexpr int64_t kMostPositions = int64_t{1} << 62;  // sizes are capped here
  static constexpr char kHasWord = 1;

  PyObject_HEAD PyObject *op, *args, *value, *source;
  long long size;  // positions of a plain node, as `Expr` explains; 0: the node is not plain
  char nullable;  // of a plain node
  char known;  // whether it is known to have a word: 0 unknown, kHasWord, or 2 (it has none)
  int8_t code;  // the code of `op`
};

namespace expression_nodes {

inline constexpr int kOps = static_cast<int>(Op::FewTokens) + 1;
inline PyTypeObject* node_type = nullptr;  // `Expr`
inline PyObject* ops[kOps] = {};
inline PyObject *empty = nullptr, *epsilon = nullptr, *nothing = nullptr;  // the empty tuple

inline bool is_node(PyObject* each) { return Py_TYPE(each) == node_type; }

// Untracks a tuple that contains no tracked object, which the collector would do later by itself.
inline bool untrack_tuple(PyObject* tuple) {
  if (!PyTuple_CheckExact(tuple)) return false;
  for (Py_ssize_t k = 0, count = PyTuple_Size(tuple); k < count; ++k) {
    if (PyObject_GC_IsTracked(PyTuple_GetItem(tuple, k))) return false;
  }
  PyObject_GC_UnTrack(tuple);
  return true;
}

// Tracks a node, or not, once its fields are set.
inline void settle_tracking(ExprNode* node) {
  auto* const object = reinterpret_cast<PyObject*>(node);
  untrack_tuple(node->value);
  const bool tracked = !untrack_tuple(node->args) || static_cast<Op>(node->code) == Op::Variable;
  if (tracked == static_cast<bool>(PyObject_GC_IsTracked(object))) return;
  if (tracked) {
    PyObject_GC_Track(object);
  } else {
    PyObject_GC_UnTrack(object);
  }
}

// A new reference to a node, or null with an error set. Steals the reference to `args`.
inline PyObject* make(Op op, PyObject* args, PyObject* value, long long size, bool nullable) {
  PyObject* const made = PyType_GenericAlloc(node_type, 0);
  if (!made) {
    Py_DECREF(args);
    return nullptr;
  }
  auto* node = reinterpret_cast<ExprNode*>(made);
  node->op = Py_NewRef(ops[static_cast<int>(op)]);
  node->args = args;
  node->value = Py_NewRef(value);
  node->source = Py_NewRef(Py_None);
  node->size = size;
  node->nullable = nullable;
  node->code = static_cast<int8_t>(op);
  settle_tracking(node);
  return made;
}

// The CONCAT or UNION of `parts`, without the parts of the kind `neutral`; the empty language if one part is of the kind `zero`.
inline PyObject* joined(Op op, PyObject* const* parts, Py_ssize_t count, Op neutral, const Op* zero) {
  Py_ssize_t kept = 0;
  long long size = 0;
  bool plain = true, every = true, some = false;
  for (Py_ssize_t k = 0; k < count; ++k) {
    if (!is_node(parts[k])) {
      PyErr_SetString(PyExc_TypeError, "the parts of an expression must be expressions");
      return nullptr;
    }
    const auto* part = reinterpret_cast<ExprNode*>(parts[k]);
    const Op own = static_cast<Op>(part->code);
    if (zero && own == *zero) return Py_NewRef(empty);
    if (own == neutral) continue;
    ++kept;
    plain = plain && part->size != 0;
    size += std::min<long long>(part->size, ExprNode::kMostPositions - size);  // capped, so it cannot overflow
    every = every && part->nullable;
    some = some || part->nullable;
  }
  const auto keeps = [&](Py_ssize_t k) { return static_cast<Op>(reinterpret_cast<ExprNode*>(parts[k])->code) != neutral; };
  if (kept == 0) return Py_NewRef(neutral == Op::Empty ? empty : epsilon);
  if (kept == 1) {
    for (Py_ssize_t k = 0;; ++k) {
      if (keeps(k)) return Py_NewRef(parts[k]);
    }
  }
  PyObject* const args = PyTuple_New(kept);
  if (!args) return nullptr;
  for (Py_ssize_t k = 0, at = 0; k < count; ++k) {
    if (keeps(k)) PyTuple_SetItem(args, at++, Py_NewRef(parts[k]));
  }
  return make(op, args, Py_None, plain ? size : 0, plain && (op == Op::Concat ? every : some));
}

inline PyObject* concat(PyObject*, PyObject* const* parts, Py_ssize_t count) {
  static constexpr Op kZero = Op::Empty;
  return joined(Op::Concat, parts, count, Op::Epsilon, &kZero);
}

inline PyObject* union_of(PyObject*, PyObject* const* parts, Py_ssize_t count) {
  return joined(Op::Union, parts, count, Op::Empty, nullptr);
}

// The texts with at least one of the parts from `begin` to `end`, in order, of which all but the last are optional.
// `later[k]`: the node for part k after another part; it has the empty word if part k is optional. Built by halves: either
// the first half has a part, and the `later` nodes of the second half follow it, or it has none.
inline PyObject* first_of(PyObject* parts, PyObject* later, Py_ssize_t begin, Py_ssize_t end) {
  if (end - begin == 1) return Py_NewRef(PyList_GetItem(parts, begin));
  const Py_ssize_t middle = begin + (end - begin) / 2;
  PyObject* sides[2] = {first_of(parts, later, begin, middle), nullptr};
  if (!sides[0]) return nullptr;
  std::vector<PyObject*> joint{sides[0]};
  for (Py_ssize_t k = middle; k < end; ++k) joint.push_back(PyList_GetItem(later, k));
  PyObject* const after = concat(nullptr, joint.data(), static_cast<Py_ssize_t>(joint.size()));
  Py_DECREF(sides[0]);
  sides[0] = after;
  sides[1] = after ? first_of(parts, later, middle, end) : nullptr;
  PyObject* const made = sides[1] ? union_of(nullptr, sides, 2) : nullptr;
  Py_XDECREF(sides[0]);
  Py_XDECREF(sides[1]);
  return made;
}

inline PyObject* literal(PyObject*, PyObject* data) {
  if (!PyBytes_Check(data)) {
    PyErr_SetString(PyExc_TypeError, "a literal must be bytes");
    return nullptr;
  }
  return PyBytes_Size(data) == 0 ? Py_NewRef(epsilon) : make(Op::Literal, Py_NewRef(nothing), data, 1, false);
}

inline int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* const kNames[] = {"op", "args", "value", "source", "size", "nullable"};
  static constexpr Py_ssize_t kCount = 6;
  PyObject* given[kCount] = {};
  const Py_ssize_t positional = PyTuple_Size(args);
  bool known = positional <= kCount;
  for (Py_ssize_t k = 0; known && k < positional; ++k) given[k] = PyTuple_GetItem(args, k);
  Py_ssize_t at = 0;
  PyObject *name, *member;
  while (known && kwargs && PyDict_Next(kwargs, &at, &name, &member)) {
    Py_ssize_t k = 0;
    while (k < kCount && PyUnicode_CompareWithASCIIString(name, kNames[k]) != 0) ++k;
    known = k < kCount && !given[k];
    if (known) given[k] = member;
  }
  if (!known || !given[0] || (given[1] && !PyTuple_Check(given[1]))) {
    PyErr_SetString(PyExc_TypeError, "a node is made of an op, a tuple of args, a value, a source, a size, and whether it is nullable");
    return -1;
  }
  const long code = PyLong_AsLong(given[0]);
  const long long size = given[4] ? PyLong_AsLongLong(given[4]) : 0;
  const int nullable = given[5] ? PyObject_IsTrue(given[5]) : 0;
  if (PyErr_Occurred()) return -1;
  if (code < 0 || code >= kOps) {
    PyErr_SetString(PyExc_ValueError, "there is no such op");
    return -1;
  }
  auto* node = reinterpret_cast<ExprNode*>(self);
  const auto set = [](PyObject*& field, PyObject* value) {
    PyObject* const before = field;
    field = Py_NewRef(value);
    Py_XDECREF(before);
  };
  set(node->op, given[0]);
  set(node->args, given[1] ? given[1] : nothing);
  set(node->value, given[2] ? given[2] : Py_None);
  set(node->source, given[3] ? given[3] : Py_None);
  node->size = size;
  node->nullable = static_cast<char>(nullable);
  node->code = static_cast<int8_t>(code);
  settle_tracking(node);
  return 0;
}

inline int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* node = reinterpret_cast<ExprNode*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(node->args);
  Py_VISIT(node->value);
  return 0;
}

inline int clear(PyObject* self) {
  auto* node = reinterpret_cast<ExprNode*>(self);
  Py_CLEAR(node->args);
  Py_CLEAR(node->value);
  return 0;
}

inline void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  auto* node = reinterpret_cast<ExprNode*>(self);
  Py_CLEAR(node->op);
  Py_CLEAR(node->source);
  clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

inline PyMemberDef members[] = {
    {"op", T_OBJECT_EX, offsetof(ExprNode, op), READONLY, nullptr},
    {"args", T_OBJECT_EX, offsetof(ExprNode, args), READONLY, nullptr},
    {"value", T_OBJECT_EX, offsetof(ExprNode, value), READONLY, nullptr},
    {"source", T_OBJECT_EX, offsetof(ExprNode, source), READONLY, nullptr},
    {"size", T_LONGLONG, offsetof(ExprNode, size), READONLY, nullptr},
    {"nullable", T_BOOL, offsetof(ExprNode, nullable), READONLY, nullptr},
    {"known", T_BYTE, offsetof(ExprNode, known), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

inline PyMethodDef functions[] = {
    {"concat", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(concat)), METH_FASTCALL,
     "concat(*parts)\n--\n\nThe parts one after the other."},
    {"union", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(union_of)), METH_FASTCALL,
     "union(*parts)\n--\n\nAny of the parts."},
    {"literal", literal, METH_O, "literal(data)\n--\n\nThe word ``data``."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace expression_nodes

// The node in a Python object; raises a TypeError if it is none.
inline const ExprNode& node_of(nb::handle object) {
  if (!expression_nodes::is_node(object.ptr())) throw nb::type_error("a node of an expression must be an Expr");
  return *reinterpret_cast<ExprNode*>(object.ptr());
}

inline void bind_nodes(nb::module_& m) {
  using namespace nb::literals;
  namespace own = expression_nodes;
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("One node of an expression.")},
      {Py_tp_init, reinterpret_cast<void*>(own::init)},
      {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
      {Py_tp_traverse, reinterpret_cast<void*>(own::traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(own::clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(own::dealloc)},
      {Py_tp_members, own::members},
      {0, nullptr},
  };
  static PyType_Spec spec = {"tokenfst._native.Node", sizeof(ExprNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                             slots};
  own::nothing = PyTuple_New(0);
  m.attr("Node") = nb::steal(PyType_FromSpec(&spec));
  for (PyMethodDef* each = own::functions; each->ml_name; ++each) m.attr(each->ml_name) = nb::steal(PyCFunction_New(each, nullptr));
  m.def(
      "first_of",
      [](nb::list parts, nb::list later, Py_ssize_t end) {
        if (end < 1 || end > static_cast<Py_ssize_t>(parts.size()) || parts.size() != later.size())
          throw nb::value_error("the range lies outside the parts");
        PyObject* const made = own::first_of(parts.ptr(), later.ptr(), 0, end);
        if (!made) throw nb::python_error();
        return nb::steal(made);
      },
      "parts"_a, "later"_a, "end"_a);
  m.def(
      "begin_nodes",
      [](nb::handle type, nb::tuple ops, nb::handle empty, nb::handle epsilon) {
        if (ops.size() != own::kOps) throw nb::value_error("the operations of Expr and of the core differ in number");
        for (int k = 0; k < own::kOps; ++k) own::ops[k] = Py_NewRef(nb::handle(ops[k]).ptr());
        own::node_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.ptr()));
        own::empty = Py_NewRef(empty.ptr());
        own::epsilon = Py_NewRef(epsilon.ptr());
      },
      "type"_a, "ops"_a, "empty"_a, "epsilon"_a, "Sets the class of nodes, and the nodes of the empty language and of the empty word.");
}

}  // namespace tokenfst
