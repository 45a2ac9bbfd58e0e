// The part of Python's pyconfig.h that the stable ABI needs, for Pyodide: the sizes of numbers on wasm32. The Python
// headers come from the build machine, whose own pyconfig.h is kept out by its include guard.
#pragma once
#define Py_PYCONFIG_H

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 4
#define SIZEOF_SIZE_T 4
#define SIZEOF_UINTPTR_T 4
#define SIZEOF_WCHAR_T 4
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_OFF_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_PID_T 4
#define SIZEOF_FPOS_T 16
#define SIZEOF__BOOL 1
#define ALIGNOF_SIZE_T 4
#define ALIGNOF_LONG 4
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_WCHAR_H 1
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TIME_H 1
