// Writes plain schemas as expressions. A schema is plain if it has a type, listed members or items, and nothing else. The
// formula of a subschema without parts becomes an expression; that of objects or arrays becomes a call of a rule, whose body is
// written later.
//
// Most subschemas are plain, and are written here. Python is called for rare cases, by methods of `Ways`
// (tokenfst.automata.json_schema.writing.plain): values without parts that have not been written yet, counts of unusual forms,
// types beside objects and arrays, names of rules that are taken. Schemas that are not plain are left to the general way,
// through sets of values.
//
// Invariant: the rules are those of the general way, under the same names and in the same order, and nodes are shared as there
// (tests/automata/json_schema/writing/test_schema_plain.py). Cost: linear in the keywords and members.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/schemas/forms.hpp"
#include "bindings/schemas/member_nodes.hpp"
#include "bindings/schemas/plain_reader.hpp"
#include "python/building_nodes.hpp"

namespace tokenfst {

namespace nb = nanobind;

// The caches of one level of nesting, as `writer.Level` has them, and the expressions of its layout. If the layout
// indents, the values of one depth share a level; otherwise all values share one.
//   known          expressions of values of this level, by formula
//   shared         calls of rules, by a key of the schema
//   names          names with their colons, by name
//   members        members, by name and id of the formula
//   later          the optional member after a comma, or nothing, by member; later_needed: the required member after a comma
struct PlainLevel {
  nb::dict known, shared, names, members, later, later_needed;
  nb::object comma, colon, empty, opened, closing;
  nb::object nodes, name_of, texts;  // MemberNodes; a function that makes other names with colons; NameTexts
  bool is_own;  // the values inside of containers are of this level, too
};

class PlainWriter;

// A rule whose body has not been written yet: the objects or arrays of one plain schema.
struct PlainBody {
  const PlainWriter* by;
  nb::object writer, level, place, types;
  nb::dict listed;
  nb::object required, rest;  // `rest`: the formula of all other members, or of all items
  bool has_items;             // whether these are arrays
  int64_t low = 0, high = -1;  // the number of items; -1: no upper bound

  nb::object write() const;
};

class PlainWriter {
 public:
  // `bits`: the keywords that are written here in schemas with `enum`, of objects, of arrays, and of values without parts.
  // `nested`, `entered`: the two values of `Place.closed` that plain schemas may have. `typed`, `scalars`: caches of
  // expressions of values without parts, by types and by keywords. `ways`: `plain.Ways`.
  PlainWriter(const PlainReader* reader, std::array<uint64_t, 4> bits, nb::object nested, nb::object entered, nb::dict typed,
              nb::dict scalars, nb::object ways)
      : reader_(*reader), of_words_(bits[0]), of_objects_(bits[1]), of_arrays_(bits[2]), of_scalars_(bits[3]), nested_(nested),
        entered_(entered), typed_(typed), scalars_(scalars), ways_(ways), type_bit_(reader_.bit(type_.ptr())),
        enum_bit_(reader_.bit(enum_.ptr())) {}

  // The expression of the texts of a formula's values; None if the formula is not a plain schema. `writer`, `level`: of the
  // schema that is written.
  nb::object text(nb::handle writer, nb::handle level, nb::handle formula) const {
    nb::object found = written(writer, level, formula);
    return found.is_valid() ? found : nb::none();
  }

  nb::object body(const PlainBody& given) const {
    const nb::object text = given.has_items ? array_text(given) : object_text(given);
    const bool alone = !given.types.is_none() && PyTuple_Size(given.types.ptr()) == 1;
    return alone ? text : nb::object(ways_.attr(among_)(given.writer, given.place, given.types, text, given.has_items));
  }

 private:
  // A subschema that is being written, with attributes of its place.
  struct Read {
    nb::object writer, level, place, value, closed, inside, resource, types;
    bool is_draft4;
  };

  static nb::object get(nb::handle object, nb::handle name) {
    nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name.ptr()));
    if (!found.is_valid()) throw nb::python_error();
    return found;
  }
  static PyObject* item(nb::handle dict, const nb::str& key) { return PlainReader::item(dict.ptr(), key.ptr()); }
  static bool is_text(PyObject* value) { return Py_TYPE(value) == &PyUnicode_Type; }
  static bool equal(nb::handle left, nb::handle right) {
    const int found = PyObject_RichCompareBool(left.ptr(), right.ptr(), Py_EQ);
    if (found < 0) throw nb::python_error();
    return found != 0;
  }
  static bool has_surrogate(nb::handle name) {
    Py_ssize_t length = 0;
    if (PyUnicode_AsUTF8AndSize(name.ptr(), &length)) return false;
    PyErr_Clear();
    return true;
  }
  // The value of a key in a dict; it is made if there is none.
  template <class Make>
  static nb::object kept(nb::dict& known, nb::handle key, Make&& make) {
    if (PyObject* const found = PlainReader::item(known.ptr(), key.ptr())) return nb::borrow(found);
    nb::object made = make();
    if (PyDict_SetItem(known.ptr(), key.ptr(), made.ptr()) < 0) throw nb::python_error();
    return made;
  }

  // --- reading ---

  // As `text`, but not valid instead of None.
  nb::object written(nb::handle writer, nb::handle level, nb::handle formula) const {
    Read read{nb::borrow(writer), nb::borrow(level), get(formula, atom_), {}, {}, {}, {}, {}, false};
    if (!reader_.is_place(read.place)) return {};
    read.value = get(read.place, value_name_);
    if (Py_TYPE(read.value.ptr()) != &PyDict_Type || PyTuple_Size(get(read.place, scope_).ptr()) != 0) return {};
    read.resource = get(read.place, resource_);
    if (!get(get(read.resource, dialect_), vocabularies_).is_none()) return {};
    read.closed = get(read.place, closed_);
    const bool is_open = read.closed.is_none();
    if (!is_open && !equal(read.closed, nested_) && !equal(read.closed, entered_)) return {};
    read.inside = is_open ? nb::none() : entered_;
    read.is_draft4 = PyLong_AsLong(get(read.resource, draft_).ptr()) == 4;
    const uint64_t said = reader_.said(nb::borrow<nb::dict>(read.value));
    PyObject* const named = item(read.value, type_);
    if (!named) {
      read.types = nb::none();
      if (said == enum_bit_) return words(read);
      return !(said & ~of_objects_) ? object(read) : !(said & ~of_arrays_) ? array(read) : nb::object();
    }
    if (is_text(named)) {
      read.types = nb::make_tuple(nb::handle(named));
    } else if (Py_TYPE(named) == &PyList_Type) {
      read.types = nb::steal(PyList_AsTuple(named));
    } else {
      return {};
    }
    PyObject* with_parts = nullptr;
    for (Py_ssize_t k = 0; k < PyTuple_Size(read.types.ptr()); ++k) {
      PyObject* const type = PyTuple_GetItem(read.types.ptr(), k);
      if (reader_.is_scalar(type)) continue;
      if (with_parts || !is_text(type)) return {};
      with_parts = type;
    }
    if (!with_parts) return scalar(read, said, formula);
    if (PyUnicode_CompareWithASCIIString(with_parts, "object") == 0 && !(said & ~of_objects_)) return object(read);
    if (PyUnicode_CompareWithASCIIString(with_parts, "array") == 0 && !(said & ~of_arrays_)) return array(read);
    return {};
  }

  // Values without parts.
  nb::object scalar(const Read& read, uint64_t said, nb::handle formula) const {
    const nb::object spelling = get(read.writer, spelling_), fractions = get(read.writer, fractions_);
    if (said == type_bit_) {
      const nb::tuple key = nb::make_tuple(read.types, read.is_draft4, spelling, fractions);
      if (nb::object known = PlainReader::item_of_shared(typed_, key); known.is_valid()) return known;
      return ways_.attr(typed_name_)(read.writer, read.types, read.place);
    }
    if (!(said & ~of_words_)) {
      if (nb::object found = words(read); found.is_valid()) return found;
    }
    const nb::object shares = get(get(read.writer, meaning_), shares_);
    if (shares.is_none() || said & ~of_scalars_ || PyUnicode_GetLength(get(read.place, pointer_).ptr()) > reader_.far_down()) return {};
    const nb::object key = reader_.text_of(read.value, count(read.value));
    if (!key.is_valid() || PyBytes_Size(key.ptr()) > kLongKey) return {};
    const nb::tuple whole = nb::make_tuple(key, get(read.resource, draft_), spelling, fractions, shares);
    if (nb::object known = PlainReader::item_of_shared(scalars_, whole); known.is_valid()) return known;
    return ways_.attr(scalar_name_)(read.writer, read.level, formula, whole);
  }
  // Listed strings.
  nb::object words(const Read& read) const {
    nb::object found = ways_.attr(words_name_)(read.writer, read.types, nb::handle(item(read.value, enum_)));
    return found.is_none() ? nb::object() : found;
  }
  Py_ssize_t count(nb::handle schema) const {
    Py_ssize_t at = 0, found = 0;
    PyObject *name, *value;
    while (PyDict_Next(schema.ptr(), &at, &name, &value)) found += reader_.bit(name) != 0;
    return found;
  }

  nb::object object(const Read& read) const {
    PyObject *properties = item(read.value, properties_), *names = item(read.value, required_);
    const nb::object members = properties ? nb::borrow(properties) : nb::object(nb::dict());
    const nb::object needed = names ? nb::borrow(names) : nb::object(nb::list());
    if (!are_members(members, needed)) return {};
    PyObject* others = item(read.value, additional_);
    if (!others) others = !properties || read.closed.is_none() || !equal(read.closed, entered_) ? Py_True : Py_False;
    if (Py_TYPE(others) != &PyDict_Type && !PyBool_Check(others)) return {};
    const nb::object rest = nb::borrow(others);  // what is called below may change the schema
    PlainBody made{this, read.writer, read.level, read.place, read.types, {}, {}, {}, false};
    const nb::object meaning = get(read.writer, meaning_), place = read.place;
    const nb::dict targets = nb::borrow<nb::dict>(get(meaning, targets_));
    made.listed = reader_.formulas(
        nb::borrow<nb::dict>(members), atoms_of(meaning), targets, read.resource, read.inside, nb::borrow<nb::str>(get(place, pointer_)),
        [&](nb::handle schema, nb::handle name) { return meaning.attr(entered_name_)(place.attr(below_)(schema, properties_, name)); });
    made.rest = formula_of(read, rest.ptr(), additional_);
    made.required = nb::steal(PyFrozenSet_New(needed.ptr()));
    if (!made.required.is_valid()) throw nb::python_error();
    for (nb::handle name : needed) {
      PyObject* const listed = PlainReader::item(made.listed.ptr(), name.ptr());
      if (reader_.is_none(listed ? nb::handle(listed) : nb::handle(made.rest)) || has_surrogate(name)) return {};
    }
    if (read.types.is_none() && reader_.is_any(made.rest) && made.listed.size() == 0 && PySet_Size(made.required.ptr()) == 0) return {};
    nb::list ids;
    for (const auto& [name, formula] : made.listed) ids.append(id_of(formula));
    const nb::object key = nb::make_tuple(nb::steal(PySequence_Tuple(made.listed.ptr())), nb::steal(PyList_AsTuple(ids.ptr())),
                                          made.required, id_of(made.rest));
    return called(read, nb::make_tuple(key, key_of_types(read)), std::move(made));
  }

  nb::object array(const Read& read) const {
    PyObject* const items = item(read.value, items_);
    const nb::object schema = nb::borrow(items ? items : Py_True);
    if (Py_TYPE(schema.ptr()) != &PyDict_Type && !PyBool_Check(schema.ptr())) return {};
    PlainBody made{this, read.writer, read.level, read.place, read.types, {}, {}, {}, true};
    PyObject *least = item(read.value, min_items_), *most = item(read.value, max_items_);
    nb::object low = nb::int_(0), high = nb::none();
    if (least || most) {
      const nb::object bounds = ways_.attr(bounds_name_)(read.place);
      if (bounds.is_none()) return {};
      low = bounds[0], high = bounds[1];
    }
    made.low = PyLong_AsLongLong(low.ptr());
    made.high = high.is_none() ? -1 : PyLong_AsLongLong(high.ptr());
    made.rest = formula_of(read, schema, items_);
    if (reader_.is_none(made.rest) || made.high == 0 || (made.high >= 0 && made.low > made.high)) return {};
    if (read.types.is_none() && reader_.is_any(made.rest) && made.low == 0 && made.high < 0) return {};
    const nb::object key = nb::make_tuple(id_of(made.rest), low, high, key_of_types(read));
    return called(read, key, std::move(made));
  }

  nb::dict atoms_of(nb::handle meaning) const { return nb::borrow<nb::dict>(get(get(meaning, formulas_), atoms_)); }
  static nb::object id_of(nb::handle object) { return nb::steal(PyLong_FromVoidPtr(object.ptr())); }
  // The formula of the subschema under a keyword, as of `Meaning.entered`.
  nb::object formula_of(const Read& read, nb::handle schema, const nb::str& keyword) const {
    const nb::object meaning = get(read.writer, meaning_);
    nb::object found = reader_.formula(schema, atoms_of(meaning), nb::borrow<nb::dict>(get(meaning, targets_)), read.resource, read.inside,
                                       nb::borrow<nb::str>(get(read.place, pointer_)), keyword);
    if (!found.is_none()) return found;
    return meaning.attr(entered_name_)(read.place.attr(below_)(schema, keyword));
  }
  // A key for the meaning of types: in draft-04, `integer` means other numbers.
  nb::object key_of_types(const Read& read) const {
    if (!read.is_draft4 || read.types.is_none()) return read.types;
    for (Py_ssize_t k = 0; k < PyTuple_Size(read.types.ptr()); ++k) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(read.types.ptr(), k), "integer") == 0) return nb::make_tuple(read.types, 4);
    }
    return read.types;
  }

  // A call of the rule with this key. If there is none yet, the rule is given a name, and waits for its body to be written.
  nb::object called(const Read& read, nb::handle key, PlainBody made) const {
    const nb::object own = get(read.level, plain_);
    return kept(nb::cast<PlainLevel&>(own).shared, key, [&] {
      const nb::object document = get(read.resource, document_), pointer = get(read.place, pointer_);
      nb::object name = pointer;
      if (PyUnicode_GetLength(document.ptr()) != 0) name = nb::steal(PyUnicode_Concat(document.ptr(), pointer.ptr()));
      const nb::object names = get(read.writer, names_);
      const int taken = PySet_Contains(names.ptr(), name.ptr());
      if (taken < 0) throw nb::python_error();
      if (taken) {
        name = read.writer.attr(unique_)(name);
      } else if (PySet_Add(names.ptr(), name.ptr()) < 0) {
        throw nb::python_error();
      }
      const nb::tuple waiting = nb::make_tuple(name, nb::cast(std::move(made)), read.writer, read.level);
      if (PyList_Append(get(read.writer, waiting_).ptr(), waiting.ptr()) < 0) throw nb::python_error();
      return nodes::call(name);
    });
  }

  // --- writing ---

  // The levels of a rule's brackets, and of the values inside of them.
  struct Levels {
    Levels(const PlainWriter& by, nb::handle level)
        : own_(get(level, by.plain_)), inside_(nb::borrow(level)), own(nb::cast<PlainLevel&>(own_)) {
      if (!own.is_own) inside_ = level.attr(by.below_)();
      inner_ = get(inside_, by.plain_);
    }
    nb::object own_, inside_, inner_;
    PlainLevel& own;
    PlainLevel& inner() const { return nb::cast<PlainLevel&>(inner_); }
  };

  // The expression of the texts of a formula's values inside of an array or object.
  nb::object value(nb::handle writer, const Levels& levels, nb::handle formula) const {
    return kept(levels.inner().known, formula, [&] {
      nb::object found = reader_.is_any(formula) ? nb::object() : written(writer, levels.inside_, formula);
      return found.is_valid() ? found : nb::object(writer.attr(general_)(formula, levels.inside_));
    });
  }

  nb::object object_text(const PlainBody& given) const {
    const Levels levels(*this, given.level);
    PlainLevel& own = levels.own;
    const bool any_order = get(given.writer, any_order_).is(Py_True), distinct = get(given.writer, distinct_).is(Py_True);
    nb::dict values = given.listed;
    nb::list pending;  // required and not listed
    for (nb::handle name : given.required) {
      if (!PlainReader::item(values.ptr(), name.ptr())) pending.append(name);
    }
    if (pending.size() != 0) {
      if (PyList_Sort(pending.ptr()) < 0) throw nb::python_error();
      values = nb::steal<nb::dict>(PyDict_Copy(values.ptr()));
      for (nb::handle name : pending) {
        if (PyDict_SetItem(values.ptr(), name.ptr(), given.rest.ptr()) < 0) throw nb::python_error();
      }
    }
    const bool is_closed = reader_.is_none(given.rest);
    const nb::object others = is_closed ? nodes::empty() : member_of_others(given, levels, values, distinct);
    std::vector<std::pair<nb::object, nb::object>> pairs;
    for (const auto& [name, formula] : values) {
      if (!reader_.is_none(formula) && !has_surrogate(name)) pairs.emplace_back(nb::borrow(name), nb::borrow(formula));
    }
    const auto& member_nodes = nb::cast<const MemberNodes&>(own.nodes);
    const auto text_of = [&](nb::handle formula) { return value(given.writer, levels, formula); };
    Options options;
    nb::list ordered, later;
    Py_ssize_t first = 0;  // the first needed one of `ordered`, and one more
    const size_t ends = any_order ? 0 : pairs.size() - pending.size();  // what is pending stands after all others
    for (size_t k = 0; k < pairs.size(); ++k) {
      const auto& [name, formula] = pairs[k];
      nb::object member = member_nodes.member(name, formula, own.names, own.members, text_of, own.name_of);
      const bool needed = PySet_Contains(given.required.ptr(), name.ptr()) == 1;
      if (k >= ends) {
        (needed ? options.required : options.free).push_back(std::move(member));
        continue;
      }
      later.append(after_comma(own, member, needed));
      ordered.append(member);
      if (needed && first == 0) first = static_cast<Py_ssize_t>(ordered.size());
    }
    const nb::object after = unordered(options, own.comma, others);
    const nb::object inner = ordered.size() == 0 ? after : in_order(own, ordered, later, first, after, options.required.empty());
    return bracketed(own, "{", inner, "}", PySet_Size(given.required.ptr()) == 0, distinct && !is_closed);
  }

  // A member with any other name.
  nb::object member_of_others(const PlainBody& given, const Levels& levels, const nb::dict& values, bool distinct) const {
    const nb::object excluded = nb::steal(PyFrozenSet_New(values.ptr()));
    if (!excluded.is_valid()) throw nb::python_error();
    nb::object name = nb::cast<NameTexts&>(levels.own.texts).without(excluded);
    if (distinct) name = nodes::made(Op::Fresh, {name}, ways_.attr(room_name_)(values.size()));
    return nodes::concat({name, levels.own.colon, value(given.writer, levels, given.rest)});
  }

  struct Options {
    std::vector<nb::object> required, free;
  };

  // Members in a fixed order, as of `Members._listed`: whichever comes first without a comma, all others after commas. `first`:
  // one more than the index of the first required one, 0 if there is none; `after`: the members in any order at the end.
  static nb::object in_order(const PlainLevel& own, const nb::list& ordered, const nb::list& later, Py_ssize_t first,
                             const nb::object& after, bool may_end) {
    const Py_ssize_t count = static_cast<Py_ssize_t>(ordered.size()), end = first == 0 ? count : first;
    const nb::object tail = nodes::either({may_end ? nodes::epsilon() : nodes::empty(), nodes::concat({own.comma, after})});
    const nb::object begun = nodes::checked(expression_nodes::first_of(ordered.ptr(), later.ptr(), 0, end));
    std::vector<PyObject*> parts{begun.ptr()};
    for (Py_ssize_t k = end; k < count; ++k) parts.push_back(PyList_GetItem(later.ptr(), k));
    parts.push_back(tail.ptr());
    const nb::object listed = nodes::concat(parts);
    return first == 0 ? nodes::either({listed, after}) : listed;
  }

  // A member after a comma, or nothing if it is not needed, as of `Writer.later`.
  static nb::object after_comma(PlainLevel& own, const nb::object& member, bool needed) {
    return kept(needed ? own.later_needed : own.later, member, [&] {
      const nb::object made = nodes::concat({own.comma, member});
      return needed ? made : nodes::either({made, nodes::epsilon()});
    });
  }

  // Members in any order, at least one, as of `expression.unordered`: the required ones, those that may come, and `others` any
  // number of times.
  nb::object unordered(const Options& options, const nb::object& comma, const nb::object& others) const {
    std::vector<PyObject*> kept_nodes{comma.ptr()};
    const size_t low = std::max<size_t>(options.required.size(), 1);
    for (const nb::object& each : options.required) {
      if (nodes::is_empty(each)) return nodes::empty();
      kept_nodes.push_back(each.ptr());
    }
    for (const nb::object& each : options.free) {
      if (!nodes::is_empty(each)) kept_nodes.push_back(each.ptr());
    }
    const bool repeats = !nodes::is_empty(others), is_alone = nodes::is_empty(comma);
    if ((!repeats && low > kept_nodes.size() - 1) || (is_alone && low > 1)) return nodes::empty();
    const int64_t high = is_alone ? 1 : -1;
    if (kept_nodes.size() == 1) return nodes::concat({others, nodes::repeat(nodes::concat({comma, others}), 0, is_alone ? 0 : -1)});
    if (repeats) kept_nodes.push_back(others.ptr());
    const nb::object value = ways_.attr(order_name_)(low, high, options.required.size(), repeats ? 1 : 0);
    PyObject* const args = PyTuple_New(static_cast<Py_ssize_t>(kept_nodes.size()));
    if (!args) throw nb::python_error();
    for (size_t k = 0; k < kept_nodes.size(); ++k) PyTuple_SetItem(args, static_cast<Py_ssize_t>(k), Py_NewRef(kept_nodes[k]));
    return nodes::checked(expression_nodes::make(Op::Unordered, args, value.ptr(), 0, false));
  }

  nb::object array_text(const PlainBody& given) const {
    const Levels levels(*this, given.level);
    const nb::object item = value(given.writer, levels, given.rest);
    nb::object inner = nodes::empty();
    if (!nodes::is_empty(item)) {
      const nb::object more = nodes::concat({levels.own.comma, item});
      inner = nodes::concat({item, nodes::repeat(more, std::max<int64_t>(given.low - 1, 0), given.high < 0 ? -1 : given.high - 1)});
    }
    return bracketed(levels.own, "[", inner, "]", given.low == 0, false);
  }

  // Brackets around `filled`, or around white space if `may_be_empty`, as of `Writer.bracketed`.
  static nb::object bracketed(const PlainLevel& own, const char* left, const nb::object& filled, const char* right, bool may_be_empty,
                              bool distinct) {
    nb::object before = nodes::literal(left);
    const nb::object after = nodes::literal(right);
    if (distinct) before = nodes::made(Op::Opened, {before});
    const nb::object bare = may_be_empty ? nodes::concat({before, own.empty, after}) : nodes::empty();
    return nodes::either({bare, nodes::concat({before, own.opened, filled, own.closing, after})});
  }

  static constexpr Py_ssize_t kLongKey = 2000;  // bytes: schemas with longer keys seldom occur twice, and are not cached

  const PlainReader& reader_;
  uint64_t of_words_, of_objects_, of_arrays_, of_scalars_;
  nb::object nested_, entered_;
  nb::dict typed_, scalars_;
  nb::object ways_;

  // A text that is looked up often: interned, so that it is compared by its address.
  struct Interned : nb::str {
    explicit Interned(const char* text) : nb::str(nb::steal<nb::str>(PyUnicode_InternFromString(text))) {}
  };
  // Attributes and methods.
  const Interned atom_{"atom"}, value_name_{"value"}, closed_{"closed"}, scope_{"scope"}, resource_{"resource"}, dialect_{"dialect"},
      vocabularies_{"vocabularies"}, draft_{"draft"}, pointer_{"pointer"}, document_{"document"}, spelling_{"spelling"},
      fractions_{"fractions"}, meaning_{"meaning"}, shares_{"shares"}, formulas_{"formulas"}, atoms_{"atoms"}, targets_{"targets"},
      entered_name_{"entered"}, below_{"below"}, plain_{"plain"}, unique_{"unique"}, general_{"general"}, any_order_{"any_order"},
      distinct_{"distinct"}, names_{"_names"}, waiting_{"_waiting"}, among_{"among"}, typed_name_{"typed"}, scalar_name_{"scalar"},
      words_name_{"words"}, bounds_name_{"bounds"}, room_name_{"room"}, order_name_{"order"};
  // Keywords.
  const Interned type_{"type"}, enum_{"enum"}, properties_{"properties"}, required_{"required"}, additional_{"additionalProperties"},
      items_{"items"}, min_items_{"minItems"}, max_items_{"maxItems"};
  uint64_t type_bit_, enum_bit_;
};

inline nb::object PlainBody::write() const { return by->body(*this); }

inline void bind_plain_writer(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<PlainLevel>(m, "PlainLevel", "The caches of one level of nesting.")
      .def(
          "__init__",
          [](PlainLevel* self, nb::dict known, nb::dict shared, nb::dict names, nb::dict members, nb::dict later, nb::dict later_needed,
             std::array<nb::object, 5> layout, nb::object nodes, nb::object name_of, nb::object texts, bool is_own) {
            new (self) PlainLevel{known,     shared,    names,     members, later,   later_needed, layout[0], layout[1],
                                  layout[2], layout[3], layout[4], nodes,   name_of, texts,        is_own};
          },
          "known"_a, "shared"_a, "names"_a, "members"_a, "later"_a, "later_needed"_a, "layout"_a, "nodes"_a, "name_of"_a, "texts"_a,
          "is_own"_a);
  nb::class_<PlainBody>(m, "PlainBody", "The body of a rule that is not written yet.").def("__call__", &PlainBody::write);
  nb::class_<PlainWriter>(m, "PlainWriter", "Writes plain schemas.")
      .def(nb::init<const PlainReader*, std::array<uint64_t, 4>, nb::object, nb::object, nb::dict, nb::dict, nb::object>(), "reader"_a,
           "bits"_a, "nested"_a, "entered"_a, "typed"_a, "scalars"_a, "ways"_a, nb::keep_alive<1, 2>())
      .def("text", &PlainWriter::text, "writer"_a, "level"_a, "formula"_a);
}

}  // namespace tokenfst
