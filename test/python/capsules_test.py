# SPDX-License-Identifier: Apache-2.0
"""Arrow structs that lack a part, in capsules: ValueError with the part that is missing, wherever the column is used.
test/fuzz/arrow_capsules.py breaks arrays at random."""

import ctypes
import unittest

from tables import message_of, pa, quern

POINTER = ctypes.c_void_p


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
                   ("release", POINTER), ("private_data", POINTER)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(POINTER)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.POINTER(Array)), ("release", POINTER), ("private_data", POINTER)]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = POINTER, (ctypes.py_object, ctypes.c_char_p)


class Broken:
    """The capsules of a good batch, whose structs `damage(schema, array)` has changed. put_back restores them for
    pyarrow, which releases them."""

    def __init__(self, damage):
        batch = pa.record_batch({"k": [1, 2], "s": ["a", "b"], "d": pa.array(["p", "q"]).dictionary_encode(),
                                 "v": pa.array(["p", "a text of more than 12 bytes"], pa.string_view())})
        self.capsules = batch.__arrow_c_array__()
        schema = ctypes.cast(pointer_of(self.capsules[0], b"arrow_schema"), ctypes.POINTER(Schema)).contents
        array = ctypes.cast(pointer_of(self.capsules[1], b"arrow_array"), ctypes.POINTER(Array)).contents
        self.saved = [(struct, ctypes.string_at(ctypes.byref(struct), ctypes.sizeof(struct)))
                      for struct in (schema, array, *(whole.children[number].contents for whole in (schema, array)
                                                      for number in range(4)))]
        # Arrays are moved out when they are taken, so the capsule gets a copy that nobody needs to release.
        self.num_released = 0
        self.callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))(self.release)
        array.release = ctypes.cast(self.callback, POINTER).value
        damage(schema, array)

    def release(self, taken):
        self.num_released += 1
        taken.contents.release = None

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules

    def put_back(self):
        for struct, bytes_ in self.saved:
            ctypes.memmove(ctypes.byref(struct), bytes_, len(bytes_))


def child(array, number, **fields):
    for name, value in fields.items():
        setattr(array.children[number].contents, name, value)


NULL_CHILD = (ctypes.POINTER(Array) * 4)()
NULL_FIELD = (ctypes.POINTER(Schema) * 4)()
CASES = [
    (lambda s, a: setattr(a, "children", None), "missing columns of a batch: 4; accepted: arrays"),
    (lambda s, a: setattr(a, "children", NULL_CHILD), "missing array of a column: column 0; accepted: an array"),
    (lambda s, a: setattr(a, "n_children", 3), "batch that does not fit its schema, by its columns: 3; accepted: 4"),
    (lambda s, a: setattr(a, "n_children", -1), "batch that does not fit its schema, by its columns: -1; accepted: 4"),
    (lambda s, a: setattr(a, "buffers", None), "not a struct array, by its number of buffers: 1; accepted: 1, with"),
    (lambda s, a: setattr(a, "n_buffers", 3), "not a struct array, by its number of buffers: 3; accepted: 1, with"),
    (lambda s, a: setattr(a, "length", -1), "number of rows out of range: -1; accepted: 0 to 2^44"),
    (lambda s, a: setattr(a, "length", 2**63 - 1), "number of rows out of range: 9223372036854775807; accepted: "),
    (lambda s, a: setattr(a, "offset", -1), "offset out of range: -1; accepted: 0 or more"),
    (lambda s, a: setattr(a, "offset", 1), "column that is shorter than its batch: 2 rows; accepted: 3"),
    (lambda s, a: setattr(a, "release", None), "released array: no release callback; accepted: an array"),
    (lambda s, a: child(a, 0, buffers=None), "missing buffers of column 0: null; accepted: an array of 2"),
    (lambda s, a: child(a, 0, n_buffers=0), "wrong number of buffers of column 0: 0; accepted: 2"),
    (lambda s, a: child(a, 0, offset=2**45), "offset and length out of range of column 0: 35184372088832 and 2; "),
    (lambda s, a: child(a, 0, null_count=5), "null count out of range of column 0: 5; accepted: -1 to 2"),
    (lambda s, a: child(a, 0, null_count=1), "wrong null count of column 0: 1; accepted: -1 or 0, since there is no"),
    (lambda s, a: child(a, 1, length=1), "column that is shorter than its batch: 1 rows; accepted: 2"),
    (lambda s, a: child(a, 1, release=None), "released array of column 1: no release callback; accepted: an array"),
    (lambda s, a: child(a, 2, dictionary=None), "missing dictionary of column 2: none; accepted: dictionary(i32,utf8)"),
    (lambda s, a: child(a, 3, n_buffers=2), "wrong number of buffers of column 3: 2; accepted: 3 or more"),
    (lambda s, a: child(a, 3, n_buffers=2**40), "wrong number of buffers of column 3: 1099511627776; accepted: 3 or"),
    (lambda s, a: setattr(s, "format", None), "missing Arrow format of t: none; accepted: a format"),
    (lambda s, a: setattr(s, "format", b"l"), "no table in t: Arrow format l; accepted: +s"),
    (lambda s, a: setattr(s, "release", None), "schema of t that was released: no release callback; accepted: a new"),
    (lambda s, a: setattr(s, "children", None), "schema of t without its columns: 4; accepted: 0 or more"),
    (lambda s, a: setattr(s, "children", NULL_FIELD), "missing schema of a column of t: column 0; accepted: a schema"),
    (lambda s, a: setattr(s, "n_children", -1), "schema of t without its columns: -1; accepted: 0 or more"),
    (lambda s, a: child(s, 0, format=None), "missing Arrow format of column k: none; accepted: a format"),
    (lambda s, a: child(s, 0, format=b"d:"), "unsupported type of column k of t: d:; accepted: bool"),
    (lambda s, a: child(s, 0, format=b"d:10"), "unsupported type of column k of t: d:10; accepted: bool"),
    (lambda s, a: child(s, 0, format=b"d:x,y"), "unsupported type of column k of t: d:x,y; accepted: bool"),
    (lambda s, a: child(s, 0, format=b"d:99,99"), "unsupported type of column k of t: decimal128(99, 99); accepted: "),
    (lambda s, a: child(s, 0, format=b"w:-1"), "unsupported type of column k of t: fixed_size_binary(-1); accepted: "),
    (lambda s, a: child(s, 0, format=b"+" * 5000), "unsupported type of column k of t: ++++"),
]  # fmt: skip
CALLS = [
    lambda t: quern.aggregate(t, by="k, d", aggs="count(*), min(s), max(v)"),
    lambda t: quern.sort(t, by="s, v desc, d, k"),
    lambda t: quern.filter(t, "k > 0 and s like '%a%' or v = 'p' or d in ('p')"),
    lambda t: quern.aggregate(t, by="s", aggs="count(*)", where="k > 0 and v = 'p' and d = 'p'"),
]


class Capsules(unittest.TestCase):
    def test_release_in_python_while_an_error_is_raised(self):
        good = Broken(lambda schema, array: None)
        with self.assertRaisesRegex(ValueError, "^released array: no release callback; accepted: "):
            quern.join(good, good, on="k")  # taken as probe, so that it is gone as build
        self.assertEqual(good.num_released, 1)
        good.put_back()

    def test_good_ones(self):
        for call in CALLS:
            broken = Broken(lambda schema, array: None)
            call(broken)
            broken.put_back()

    def test_parts_that_are_missing(self):
        for damage, text in CASES:
            for call in CALLS:
                broken = Broken(damage)
                with self.assertRaises(ValueError) as error:
                    call(broken)
                broken.put_back()
                self.assertIn(text, message_of(error))
                self.assertLess(len(message_of(error)), 1000)

    def test_what_is_no_pair_of_capsules(self):
        class Answers:
            def __init__(self, answer):
                self.answer = answer

            def __arrow_c_array__(self, requested_schema=None):
                return self.answer

        for answer in (None, (), (1,), (1, 2, 3), [1, 2]):
            with self.assertRaisesRegex(TypeError, "^no pair from __arrow_c_array__ of t: .*; accepted: two capsules$"):
                quern.sort(Answers(answer), by="k")
        with self.assertRaises(ValueError):
            quern.sort(Answers((1, 2)), by="k")


if __name__ == "__main__":
    unittest.main()
