# SPDX-License-Identifier: Apache-2.0
"""Jobs under a memory limit that may write rows to files, or to a store of the host: random ones, and what they may
answer.

    spill = random_spill(rng)                      Spill(memory_limit=1310720, block_bytes=4096, store="host"), or None
    kernel.job(memory_limit=spill.memory_limit, spill=store_of(spill))

A megabyte of each limit is set aside for reading and writing. The cases have few rows, so that most limits lie little
above it: of 1,310,720 bytes 262,144 are for groups and results, which 5,000 groups with strings exceed.

Below LEAST_LIMIT, the least with which any job is promised to finish, a job may still be refused memory. A run counts
how many jobs spilled and finished, and Coverage asks for some of each store.
"""
import ctypes
import dataclasses
import functools
import os
import tempfile
import threading

import abi_structs

LEAST_LIMIT = 16 << 20
STORES = ("files", "host")
# Plan parameters that say how spilled rows are written and read.
PARAMS = {"spill_reads": ("ring", "threads"), "spill_block_bytes": (16384, 65536, 1 << 20),
          "spill_read_ahead": (1, 2, 7, 64), "spill_write_behind": (0, 1, 5, 64), "spill_threads": (1, 2, 5),
          "spill_codec": ("none", "lz4")}
_SET_ASIDE = 1 << 20
_RESOURCE_EXHAUSTED, _FAILED_PRECONDITION = 2, 3


@dataclasses.dataclass(frozen=True)
class Spill:
    memory_limit: int  # bytes
    block_bytes: int   # 0: by the limit
    store: str         # of STORES


def random_spill(rng, share=1.0):
    """`share`: of the calls that answer something else than None."""
    if rng.random() >= share:
        return None
    limit = rng.choices((rng.choice((1000, 300_000, _SET_ASIDE)), _SET_ASIDE + int(2**rng.uniform(16, 20)),
                         int(2**rng.uniform(20, 24)), LEAST_LIMIT << rng.randrange(3)), (5, 60, 20, 15))[0]
    return Spill(limit, rng.choice((0, 0, 4096, 10_000, 1 << 20)), rng.choice(STORES))


def random_spill_params(rng):
    """Of PARAMS, some."""
    return {name: rng.choice(values) for name, values in PARAMS.items() if rng.random() < 0.4}


def with_spills(rng, variants, may_spill=lambda variant: True):
    """The variants, about a third of them with a limit, and with parameters for what is written under it. Two that
    differ in their engine alone have the same ones."""
    spills = {}
    for variant in variants:
        alike = repr(dataclasses.replace(variant, engine=""))
        if alike not in spills:
            spills[alike] = random_spill(rng, 0.35), random_spill_params(rng)
        spill, params = spills[alike]
        if spill is None or not may_spill(variant):
            yield variant
        else:
            yield dataclasses.replace(variant, spill=spill, params={**variant.params, **params})


def is_refusal(error, spill, is_concurrent):
    """Whether the limit may be the reason of an error. Where threads append, others are told that one of them
    failed."""
    if spill is None or spill.memory_limit >= LEAST_LIMIT:
        return False
    is_echo = is_concurrent and error.status == _FAILED_PRECONDITION and "after a failed" in error.text
    return is_echo or error.status == _RESOURCE_EXHAUSTED


def coverage_marks(variant, answer):
    """What a run under a limit has shown."""
    if variant.spill is None:
        return
    is_written = not answer.out_of_memory and answer.spilled_bytes > 0
    yield "spill", "refused" if answer.out_of_memory else f"to {variant.spill.store}" if is_written else "not needed"
    if is_written:
        yield "spill", f"{variant.params.get('spill_reads', 'ring')} from {variant.spill.store}"


WANTED_MARKS = {("spill", end) for end in ("refused", "not needed", *(f"to {store}" for store in STORES),
                                           "ring from files", "threads from files")}

# ---- stores ----------------------------------------------------------------------------------------------------------


@functools.cache
def _folder():
    """For the nameless files of this process; removed with it."""
    return tempfile.TemporaryDirectory(prefix="quern-spill-")


class Files:
    """A folder, which has no entry before or after a job."""

    def __init__(self, block_bytes):
        self.options = abi_structs.sized(abi_structs.SpillOptions, folder=os.fsencode(_folder().name),
                                         block_bytes=block_bytes)

    def what_is_left(self):
        folder = _folder().name
        return os.listdir(folder) if os.path.isdir(folder) else []  # it goes before the last objects of the process


class HostStore:
    """Blocks in Python's memory, by number."""

    def __init__(self, block_bytes):
        self.blocks, self.num_blocks, self.lock = {}, 0, threading.Lock()
        self.options = abi_structs.sized(
            abi_structs.SpillOptions, block_bytes=block_bytes, write_block=abi_structs.WRITE_BLOCK(self._write),
            read_block=abi_structs.READ_BLOCK(self._read), free_block=abi_structs.FREE_BLOCK(self._free))

    def _write(self, _host, data, num_bytes, number):
        with self.lock:
            self.num_blocks += 1
            self.blocks[self.num_blocks] = ctypes.string_at(data, num_bytes)
            number[0] = self.num_blocks
        return 0

    def _read(self, _host, number, data, num_bytes):
        with self.lock:
            block = self.blocks[number]
        if len(block) != num_bytes:
            return 1
        ctypes.memmove(data, block, num_bytes)
        return 0

    def _free(self, _host, number, num_bytes):
        with self.lock:
            del self.blocks[number]

    def what_is_left(self):
        return [f"block {number}" for number in self.blocks]


def store_of(spill):
    """What a job of quern_abi takes: `options`, and what_is_left() once the job is gone."""
    return None if spill is None else {"files": Files, "host": HostStore}[spill.store](spill.block_bytes)


def memory_of(variant):
    """Options of a variant's job."""
    spill = variant.spill
    return {} if spill is None else {"memory_limit": spill.memory_limit, "store": store_of(spill)}
