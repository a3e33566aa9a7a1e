# SPDX-License-Identifier: Apache-2.0
"""Work for several Python threads. The library is called without the interpreter's lock, so its calls run concurrently.

    in_threads([lambda hand=hand: work(taken(hand)) for hand in partitioned(batches, 3)])
"""
import collections
import threading


def in_threads(works):
    """Calls each function in a thread of its own; then raises the first error there was."""
    errors = []

    def guarded(work):
        try:
            work()
        except Exception as error:  # whatever it is, it is raised in the caller's thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def run_each(works, threaded):
    """Calls each function: at once, or one after the other."""
    if threaded:
        return in_threads(works)
    for work in works:
        work()


def partitioned(batches, num_hands):
    """The batches partitioned in turn; each hand gives up a batch when it is taken."""
    hands = [collections.deque() for _ in range(num_hands)]
    for number, batch in enumerate(batches):
        hands[number % num_hands].append(batch)
    return hands


def taken(hand):
    while hand:
        yield hand.popleft()
