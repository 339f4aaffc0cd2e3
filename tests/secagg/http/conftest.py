"""Coroutine functions as tests, each in an event loop of its own."""

from __future__ import annotations

from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call
