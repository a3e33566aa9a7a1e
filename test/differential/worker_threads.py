# SPDX-License-Identifier: Apache-2.0
"""Work for several Python threads. The library is called without the interpreter's lock, so its calls run concurrently.

    in_threads([lambda hand=hand: work(taken(hand)) for hand in partitioned(batches, 3)])
"""
import collections
import threading

import quern_abi


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


def finalise(job, num_threads, in_pieces):
    """Does the work of a job by so many threads (0: this one): waiting for each other, or piece by piece."""
    work = job.work_to_end if in_pieces else job.finalise
    in_threads([work] * num_threads) if num_threads else work()


def _append_one(rows, batch, more_tries):
    """Appends a batch that is refused memory again, so many times."""
    for tries_left in range(more_tries, -1, -1):
        try:
            return rows.append(batch)
        except quern_abi.QuernError as error:
            if error.status != quern_abi.RESOURCE_EXHAUSTED or not tries_left:
                raise


def append(job, port, batches, copy_bytes=False, keep=None, more_tries=0):
    """Adds batches by one input. Each comes with the owners of its bytes, which are given up unless `keep` is there to
    take them."""
    with job.input(port, copy_bytes=copy_bytes) as rows:
        for batch, owners in batches:
            _append_one(rows, batch, more_tries)
            if keep is not None:
                keep.append(owners)
            del batch, owners
        rows.finish()


def append_all(job, port, batches, num_threads, copy_bytes=False, keep=None, more_tries=0):
    """The same by so many threads, each by an input of its own; 0: by this one."""
    if num_threads:
        in_threads([lambda hand=hand: append(job, port, taken(hand), copy_bytes, keep, more_tries)
                    for hand in partitioned(batches, num_threads)])
    else:
        append(job, port, batches, copy_bytes, keep, more_tries)


def partitioned(batches, num_hands):
    """The batches partitioned in turn; each hand gives up a batch when it is taken."""
    hands = [collections.deque() for _ in range(num_hands)]
    for number, batch in enumerate(batches):
        hands[number % num_hands].append(batch)
    return hands


def taken(hand):
    while hand:
        yield hand.popleft()
