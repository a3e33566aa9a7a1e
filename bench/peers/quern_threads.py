# SPDX-License-Identifier: Apache-2.0
"""Threads of Python that share work: ctypes releases the interpreter's lock while a thread is in the library."""
import threading


class _Shared:
    """An iterator that several threads may draw from."""

    def __init__(self, items):
        self._items, self._lock = iter(items), threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self._lock:
            return next(self._items)


def in_threads(num_threads, work, items=()):
    """What work(items) answers in each thread. All of them draw from the same items."""
    shared, results = _Shared(items), []
    others = [threading.Thread(target=lambda: results.append(work(shared))) for _ in range(num_threads - 1)]
    for thread in others:
        thread.start()
    try:
        results.append(work(shared))
    finally:
        for thread in others:
            thread.join()
    if len(results) != num_threads:
        raise RuntimeError(
            f"threads that failed: {num_threads - len(results)} of {num_threads}; what they say stands above")
    return results
