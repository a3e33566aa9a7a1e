# SPDX-License-Identifier: Apache-2.0
"""A host's account of memory: `reserve` and `release` of a job's options, which refuse some requests.

    account = Account(random.Random(7), share=0.1, most=20)     a tenth of the requests, 20 at most, while it refuses
    kernel.job(account=account)
    account.leave_room(1000)      refuses the next request, and then what exceeds so many bytes more
    account.allow_all()

A memory limit refuses all that comes after it. So a job with few rows, whose buffers take more than its rows, either
has room for both or for neither; an account refuses what a test wants it to, and the job writes rows or fails.
"""
import ctypes
import math
import threading

from abi_structs import RELEASE, RESERVE


class Account:
    def __init__(self, rng=None, share=0.0, most=0):
        self.rng, self.share, self.most = rng, share, most
        self.used_bytes, self.num_refused = 0, 0
        self._limit, self._refuses_next = math.inf, False
        self._lock = threading.RLock()  # Python may destroy a handle, whose job releases memory, while a thread has it
        self._callbacks = RESERVE(self._reserve), RELEASE(self._release)

    def options(self):
        """Members of a job's options."""
        reserve, release = (ctypes.cast(function, ctypes.c_void_p) for function in self._callbacks)
        return {"reserve": reserve, "release": release}

    def leave_room(self, num_bytes):
        with self._lock:
            self._limit, self._refuses_next = self.used_bytes + num_bytes, True

    def allow_all(self):
        with self._lock:
            self._limit, self._refuses_next, self.share = math.inf, False, 0.0

    def _is_refused(self, num_bytes):
        if self._refuses_next:
            self._refuses_next = False
            return True
        if self.share and self.num_refused < self.most and self.rng.random() < self.share:
            return True
        return self.used_bytes + num_bytes > self._limit

    def _reserve(self, _host, num_bytes):
        with self._lock:
            if self._is_refused(num_bytes):
                self.num_refused += 1
                return False
            self.used_bytes += num_bytes
            return True

    def _release(self, _host, num_bytes):
        with self._lock:
            self.used_bytes -= num_bytes
