# SPDX-License-Identifier: Apache-2.0
"""What is asked of every kernel, whatever its operator: that it is made the same when it is made twice, and refuses what does not fit."""
import quern_abi
from result_columns import Mismatch

_TEXTS = ("spec", "plan", "layout", "engine", "code_bytes")


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
            raise Mismatch(f"the canonical spec prints otherwise when parsed again: {texts[0]['spec']!r} and {kernel.text('spec')!r}")


def check_refused(library, spec, params):
    """That these parameters are an invalid argument."""
    try:
        library.compile(spec, "generic", params).close()
    except quern_abi.QuernError as error:
        if error.status == quern_abi.INVALID_ARGUMENT:
            return
        raise
    raise Mismatch(f"{params} was accepted for keys that do not fit one word")
