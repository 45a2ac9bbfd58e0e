// A Python object that masks are written into: numpy arrays through the buffer protocol; torch tensors and others
// through DLPack, which is slower. Checked on every call; nothing about the object is remembered.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <string_view>
#include <vector>

#include "calls/budget.hpp"
#include "support/counted.hpp"

namespace tokenfst {

class BitmaskBuffer {
 public:
  // An int32 array of shape (rows, words) or (words,) in host memory, whose rows are contiguous. For others it raises
  // MaskBufferError. Valid while the caller holds `object`.
  explicit BitmaskBuffer(nanobind::handle object) {
    if (PyObject_CheckBuffer(object.ptr())) from_buffer(object);
    else from_dlpack(object);
    const size_t ndim = shape_.size();
    if (ndim != 1 && ndim != 2) refuse("the bitmask must have shape (batch, words)");
    if (words() > 1 && rows() > 0 && strides_.back() != 1) refuse("the rows of the bitmask must be contiguous");
  }
  // The same; raises MaskBufferError also if a row does not have `words` words.
  BitmaskBuffer(nanobind::handle object, size_t words) : BitmaskBuffer(object) { check_words(words); }

  void check_words(size_t words) const {
    if (this->words() != words) refuse("the bitmask must have " + counted(words, "word") + " a row");
  }
  size_t words() const { return static_cast<size_t>(shape_.back()); }

  // The words of a row; raises MaskBufferError if there is no such row.
  uint32_t* row(int64_t index) const {
    if (index < 0 || index >= rows()) refuse("row " + std::to_string(index) + " lies outside the bitmask");
    return data_ + (shape_.size() == 1 ? 0 : index * strides_[0]);
  }
  int64_t rows() const { return shape_.size() == 1 ? 1 : shape_[0]; }
  // Words between the beginnings of two rows.
  ptrdiff_t stride() const { return shape_.size() == 1 ? 0 : strides_[0]; }

 private:
  // The shape of a buffer. Only up to two dimensions are valid; more are stored only for the error message.
  struct Dims {
    int64_t values[8];
    size_t count = 0;
    size_t size() const { return count; }
    void push_back(int64_t value) {
      if (count < 8) values[count++] = value;
    }
    int64_t back() const { return count ? values[count - 1] : 0; }
    int64_t operator[](size_t i) const { return values[i]; }
  };

  void from_buffer(nanobind::handle object) {
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) != 0) {
      PyErr_Clear();
      throw Error(Fault::MaskBuffer, "the bitmask must be an array that can be written to" + remedy());
    }
    data_ = static_cast<uint32_t*>(view.buf);
    bool fits =
        view.itemsize == 4 && view.format && std::string_view("iIlL").find(view.format[0]) != std::string_view::npos && view.format[1] == 0;
    for (int i = 0; i < view.ndim; ++i) {
      shape_.push_back(view.shape[i]);
      strides_.push_back(view.strides[i] / 4);
      fits = fits && view.strides[i] % 4 == 0;
    }
    PyBuffer_Release(&view);
    if (!fits) refuse("the bitmask must be of dtype int32");
  }

  void from_dlpack(nanobind::handle object) {
    nanobind::ndarray<> array;
    if (!nanobind::try_cast(object, array)) throw Error(Fault::MaskBuffer, "the bitmask must be an int32 array or tensor" + remedy());
    for (size_t i = 0; i < array.ndim(); ++i) {
      shape_.push_back(static_cast<int64_t>(array.shape(i)));
      strides_.push_back(array.stride(i));
    }
    if (array.dtype() != nanobind::dtype<int32_t>() && array.dtype() != nanobind::dtype<uint32_t>())
      refuse("the bitmask must be of dtype int32");
    if (array.device_type() != nanobind::device::cpu::value) refuse("the bitmask must be in host memory");
    data_ = static_cast<uint32_t*>(array.data());
  }

  static std::string remedy() { return "; allocate_token_bitmask(batch, vocab_size) makes one that fits"; }
  [[noreturn]] void refuse(const std::string& rule) const {
    std::string shape;
    for (size_t i = 0; i < shape_.size(); ++i) shape += (i ? ", " : "") + std::to_string(shape_[i]);
    throw Error(Fault::MaskBuffer, rule + " (it has shape (" + shape + "))" + remedy());
  }

  uint32_t* data_ = nullptr;
  Dims shape_, strides_;
};

}  // namespace tokenfst
