"""The wheels of a release, cross-compiled by zig: ``python -m wheels``, for ``make wheels``.

All have the stable ABI of CPython 3.11, so one wheel serves each platform. zig brings the C
library of every target: glibc 2.17, musl, and those of Windows and macOS. The headers come from
the Python that builds, except pyconfig.h, which depends on the target.
"""
