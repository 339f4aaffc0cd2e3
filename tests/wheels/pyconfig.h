/* pyconfig.h of any platform with a C compiler of GNU's dialect, for the limited API of CPython only.
 *
 * CPython's own has the results of ./configure, or is PC/pyconfig.h on Windows. The headers of the
 * limited API read only sizes, which the compiler knows of its target, and who exports symbols.
 */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H

#define SIZEOF_SHORT __SIZEOF_SHORT__
#define SIZEOF_INT __SIZEOF_INT__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define WITH_DOC_STRINGS 1

#if defined(_WIN32)
#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define Py_ENABLE_SHARED /* data comes from python3.dll: dllimport */
#else
#define HAVE_SSIZE_T 1
#endif

#endif
