# SPDX-License-Identifier: Apache-2.0
"""Checks of every kernel, whatever its operator: two compilations give the same code, and unfit parameters are
refused."""
import contextlib
import gc
import random

import quern_abi
from random_data import GuardedBuffer
from result_columns import Mismatch

_TEXTS = ("spec", "plan", "layout", "engine", "code_bytes")


def _rows_before_swap(variant):
    """For a variant of engine `auto`: the number of rows for the generic kernel; few as often as many."""
    return int(2**random.Random(variant.layout_seed).uniform(0, 12))


def _kernel_for(library, spec, variant):
    if variant.engine == "auto":
        return library.compile_after(_rows_before_swap(variant), spec, variant.params_text() or None)
    kernel = library.compile(spec, variant.engine, variant.params_text() or None)
    if kernel.text("engine") != variant.engine:
        found = kernel.text("engine")
        kernel.close()
        raise Mismatch(f"asked for engine {variant.engine}, got {found}")
    return kernel


def _check_counted(counters, spec, variant):
    """Checks that the kernels' shares are those of the variant. Of a swap: the batch with the last of the rows is the
    compiled one's. Decimals of a map that do not fit 64 bits are computed by the generic kernel, whatever was asked."""
    shares = {"generic": counters.generic_rows, "jit": counters.compiled_rows}
    if counters.rows != sum(shares.values()):
        raise Mismatch(f"{counters.rows} rows counted, of which {shares}")
    if spec.startswith(("map ", "pipeline ")) and "decimal" in spec and variant.engine != "generic":
        return
    if variant.engine in shares and counters.rows != shares[variant.engine]:
        raise Mismatch(f"asked for engine {variant.engine}, which ran {shares[variant.engine]} of {counters.rows} rows")
    if variant.engine == "auto" and counters.rows >= _rows_before_swap(variant) and not counters.compiled_rows:
        raise Mismatch(f"{counters.rows} rows came and the compiled kernel got none; to be compiled after "
                       f"{_rows_before_swap(variant)}")


@contextlib.contextmanager
def compiled(library, spec, variant):
    """The kernel of a variant, for one job. `auto` swaps to the compiled kernel in the middle of it."""
    with _kernel_for(library, spec, variant) as kernel:
        before = kernel.counters()
        yield kernel
        if before.rows == 0:  # no other job ran the kernel
            _check_counted(kernel.counters(), spec, variant)


def check_inputs_released():
    """Checks that the library holds no buffer of a host once all handles are destroyed."""
    if len(GuardedBuffer.live):
        gc.collect()  # a reference cycle of Python's own may hold them
    if len(GuardedBuffer.live):
        held = len(GuardedBuffer.live)
        GuardedBuffer.live.clear()
        raise Mismatch(f"{held} input buffers are still held after all handles were destroyed")


def check_made_anew(library, spec, variant):
    texts = []
    for _ in range(2):
        library.clear_cache()
        with library.compile(spec, variant.engine, variant.params_text() or None) as kernel:
            texts.append({name: kernel.text(name) for name in _TEXTS})
    for name, text in texts[0].items():
        if text != texts[1][name]:
            raise Mismatch(f"compiled twice, `{name}` differs: {text!r} and {texts[1][name]!r}")
        if text is None:
            raise Mismatch(f"a kernel has no text `{name}`")
    with library.compile(texts[0]["spec"], "generic") as kernel:
        if kernel.text("spec") != texts[0]["spec"]:
            raise Mismatch(f"the canonical spec prints otherwise when parsed again: {texts[0]['spec']!r} and "
                           f"{kernel.text('spec')!r}")


def check_refused(library, spec, params):
    """Checks that these parameters are refused as an invalid argument."""
    try:
        library.compile(spec, "generic", params).close()
    except quern_abi.QuernError as error:
        if error.status == quern_abi.INVALID_ARGUMENT:
            return
        raise
    raise Mismatch(f"{params} was accepted for keys that do not fit one word")
