# SPDX-License-Identifier: Apache-2.0
"""Runs a pipeline in a variant through the C ABI: the tables, each by a join's job or by a pipeline of its own; the
kernel of the spec, and its job; appends; the work, with what joins have left; the results of the end.

    answer = run(library, case, variant)         what the end's operator answers, or the error

Threads are Python's; the library is called without the interpreter's lock, so its calls run concurrently.
"""
import array
import contextlib
import dataclasses
import random
import re
import threading

import aggregate_run
import join_run
import quern_abi
import row_feed
import sort_run
from aggregate_expected import output_types
from emitted_rows import rows_of
from host_account import Account
from join_feed import Feeder as TableFeeder
from kernel_checks import check_inputs_released, check_made_anew, compiled
from pipeline_ends import EmitAnswer
from pipeline_rows import bracketed
from quern_abi import BUILD, PROBE, ROWS
from random_spill import LEAST_LIMIT, memory_of
from result_columns import Mismatch
from sort_expected import Answer as SortAnswer
from worker_threads import append_all, finalise

# ---- the source ------------------------------------------------------------------------------------------------------


class SourceFeeder(row_feed.Feeder):
    """The source's rows in batches. Selections may lie far apart; where row ids come out, row r has the id
    first_row_id + r in every variant."""

    def __init__(self, case, variant):
        self.variant = variant
        super().__init__(case, variant)
        if not case.tells_row_ids():
            return
        if case.first_row_id and not self.vectors:
            self.vectors = True  # arrays are numbered from 0 on
        first_ids = []
        for number, (first, end) in enumerate(self.cuts):
            skipped = min(case.first_row_id + first, self.rng.choice((0, 1, 10))) if self.selects else 0
            if self.selects:
                selection = list(range(skipped, skipped + end - first))
                if self.shuffles:
                    self.rng.shuffle(selection)
                self._places[number] = row_feed.Places(skipped + end - first + self.rng.choice((0, 3)),
                                                       range(skipped, skipped + end - first),
                                                       array.array("I", selection))
            first_ids.append(case.first_row_id + first - skipped)
        self._first_ids = [*first_ids, 0]

    def _cuts(self, num_batches):
        size, num_rows = self.variant.rows_per_batch, self.case.num_rows
        if not size or self.case.plain:
            return super()._cuts(num_batches)
        bounds = [*range(0, num_rows, size), num_rows]
        cuts = list(zip(bounds, bounds[1:]))
        for _ in range(self.rng.choice((0, 1, 2))):  # batches without rows
            place = self.rng.randint(0, len(cuts))
            first = cuts[place][0] if place < len(cuts) else num_rows
            cuts.insert(place, (first, first))
        return cuts

    def places(self, num_rows):
        places = super().places(num_rows)
        if places.selection is None or self.variant.spread == 1:
            return places
        total = places.total * self.variant.spread
        of_row = sorted(self.rng.sample(range(total), num_rows))
        selection = list(of_row)
        if self.shuffles:
            self.rng.shuffle(selection)
        return row_feed.Places(total, of_row, array.array("I", selection))


# ---- tables ----------------------------------------------------------------------------------------------------------


def _as_source(batch, owners, table):
    """A batch of a table's rows, whose keys and payload are columns of a pipeline's source."""
    keys = [batch.keys[number] for number in range(len(table.keys))]
    payload = [batch.payload[number] for number, column in enumerate(_payload(table)) if column is not None]
    made = quern_abi.batch_of_columns(keys + payload, [], None, batch.num_rows, batch.first_row_id, owners)
    made.selection = batch.selection
    return made, owners


def _payload(table):
    """The columns of a batch behind its keys; None: a row id."""
    return [item.column for item in table.sides["build"].payload] + [one.column for one in table.residuals]


def _building_spec(table, spec):
    """That of a pipeline which only builds."""
    payload, num_keys = _payload(table), len(table.keys)
    types = [dataclasses.replace(column.type, collation="", null_equal=False).text()
             for column in [*table.keys, *(column for column in payload if column)]]
    numbers, place = [], num_keys
    for column in payload:
        numbers.append(place if column else 0)
        place += column is not None
    return f"pipeline in={','.join(types)} | build {spec} {bracketed(range(num_keys), numbers)}"


def _built_table(library, join, rows, variant, by_pipeline, room, handles, keep):
    """The finalised job of a table, and its account of memory, if it has one."""
    table = join.case(rows)
    feeder, port = TableFeeder(table, variant, "build"), ROWS if by_pipeline else BUILD
    spec = _building_spec(table, join.spec) if by_pipeline else join.spec
    kernel = handles.enter_context(compiled(library, spec, variant))
    account = None if room is None else Account()
    job = handles.enter_context(kernel.job(**memory_of(variant), account=account))
    if not feeder.vectors:
        schema, keys, payload = feeder.arrow_children()
        if by_pipeline:
            keys, payload = keys + [child for child in payload if child >= 0], []
        job.bind_arrow(port, schema, keys, payload)
    batches = feeder.batches()
    if by_pipeline and feeder.vectors:
        batches = (_as_source(batch, owners, table) for batch, owners in batches)
    counts = feeder.has_row_id and not feeder.vectors  # the job numbers the rows, in order of arrival
    append_all(job, port, batches, 0 if counts else variant.append_threads, variant.copy_bytes,
               None if variant.copy_bytes else keep)
    if account:
        account.leave_room(room)
    finalise(job, variant.finalise_threads, variant.layout_seed % 2)
    if account:
        account.allow_all()
    return job, account


def _built_tables(library, case, variant, handles, keep, accounts):
    """For each step that probes or reduces, its table."""
    jobs = {}
    for step, rows in zip(case.steps, case.stages):
        if step.word == "probe":
            place = step.join.place
            job, account = _built_table(library, step.join, rows, variant.tables[place],
                                        variant.built_by[place] == "pipeline", variant.rooms.get(place), handles, keep)
            jobs[id(step.join)] = job
            accounts += [account] * (account is not None)
    return [jobs[id(table)] for table in case.tables()]


# ---- answers ---------------------------------------------------------------------------------------------------------


AFTER_A_FAILURE = ("after a failed", "after a failure")  # what other threads are told


@dataclasses.dataclass
class Answer:
    end: object = None     # of the end's operator
    error: quern_abi.QuernError | None = None
    row_ids: list | None = None  # of the source's rows, by which an error names them; None: not known
    out_of_memory: bool = False
    concurrent: bool = False
    spilled_bytes: int = 0
    num_spilled: int = 0   # tables that have written rows
    num_refused: int = 0   # requests for memory, by the host


def _is_memory_refused(error, variant):
    """Whether a limit may be the reason. Where threads work together, others are told that one of them failed; so is
    the thread itself that appends again after rows could not all be written."""
    spills = [variant.spill, *(table.spill for table in variant.tables.values())]
    limits = [spill.memory_limit for spill in spills if spill]
    has_limit = (variant.memory_limit or variant.refused_share or variant.rooms
                 or any(0 < limit < LEAST_LIMIT for limit in limits))
    may_echo = variant.num_threads() > 1 or (variant.refused_share and any(spills))
    is_echo = (error.status == quern_abi.FAILED_PRECONDITION and may_echo
               and any(text in error.text for text in AFTER_A_FAILURE))
    return bool(has_limit) and (error.status == quern_abi.RESOURCE_EXHAUSTED or is_echo)


def _lacks_row_ids(error, variant):
    """Whether row ids are read behind a semi or anti join that has written rows."""
    return (error.text.startswith("row ids of a pipeline behind step ")
            and any(table.spill for table in variant.tables.values()))


# ---- ends ------------------------------------------------------------------------------------------------------------


def _append(job, feeder, variant, keep):
    account = job.account
    append_all(job, ROWS, feeder.batches(), variant.append_threads, variant.copy_bytes,
               None if variant.copy_bytes and feeder.vectors else keep, account.most if account else 0)
    if account and variant.layout_seed % 4:
        account.allow_all()
    finalise(job, variant.finalise_threads, variant.layout_seed % 2)
    if account:
        account.allow_all()


def _all_batches(feeder, keep):
    batches = list(feeder.batches())
    keep += [owners for _, owners in batches]
    return [batch for batch, _ in batches]


def _run_at_once(job, inputs, variant, batch_rows, reader):
    lock = threading.Lock()

    def on_result(result):
        with lock:
            return reader.take(result)

    num_rows = job.run(inputs, variant.whole_run, batch_rows, on_result)
    if num_rows != reader.num_rows:
        raise Mismatch(f"quern_job_run says {num_rows} rows; {reader.num_rows} came out")


def _aggregated(job, case, variant, feeder, keep):
    end, of_end = case.end.case, variant.end
    if variant.whole_run:
        reader = aggregate_run.reader_of(output_types(end), of_end)
        _run_at_once(job, {ROWS: _all_batches(feeder, keep)}, variant, of_end.batch_rows, reader)
        rows = aggregate_run.rows_of([reader])
    else:
        _append(job, feeder, variant, keep)
        rows = aggregate_run.read(job, output_types(end), of_end)
    aggregate_run.check_layout(end, of_end, job.layout())
    answer = aggregate_run.answer_of(end, of_end, rows, job)
    if case.stages[-1].ids is None:
        answer.spelling = "any"
    if any(table.append_threads > 1 for table in variant.tables.values()):
        answer.order = None  # of matches
    return answer


def _sorted(job, case, variant, feeder, keep):
    end, of_end = case.end.case, variant.end
    if variant.whole_run:
        reader = sort_run.reader_of(end, of_end)
        _run_at_once(job, {ROWS: _all_batches(feeder, keep)}, variant, of_end.batch_rows, reader)
        table, num_rows = sort_run.table_of_readers([reader])
    else:
        _append(job, feeder, variant, keep)
        table, num_rows = sort_run.read_rows(job, end, of_end)
    stats, ids = job.stats(), feeder.row_ids()
    if stats.num_rows != num_rows:
        raise Mismatch(f"stats say num_rows {stats.num_rows}; {num_rows} came out")
    row_ids = [ids[row] for row in case.stages[-1].ids or ()]
    repeats = repr(dataclasses.replace(variant, engine="", end=None, tables={}))
    return SortAnswer(table, num_rows, row_ids, stats.input_rows, repeats=repeats, method=job.layout(),
                      spilled_bytes=stats.spilled_bytes)


def _built(job, case, variant, feeder, keep):
    end, of_end, error = case.end.case, variant.end, None
    probe = TableFeeder(end, of_end, "probe")
    counts = probe.has_row_id and not probe.vectors
    readers = [join_run.reader_of(end, of_end) for _ in range(1 if counts else of_end.num_probers)]
    if not probe.vectors:
        job.bind_arrow(PROBE, *probe.arrow_children())
    at_once = variant.whole_run and probe.vectors and readers[0].vectors
    if not at_once:
        _append(job, feeder, variant, keep)
    try:
        if at_once:
            probes = list(probe.batches())
            keep += [owners for _, owners in probes]
            inputs = {ROWS: _all_batches(feeder, keep), PROBE: [batch for batch, _ in probes]}
            _run_at_once(job, inputs, variant, of_end.batch_rows, readers[0])
        else:
            join_run.probe_all(job, end, probe, of_end, readers)
    except quern_abi.QuernError as raised:
        error = raised.with_traceback(None)
        if _is_memory_refused(error, variant) or at_once and case.failed_at:
            raise
    stats = job.stats()
    table = None if error else join_run.table_of_readers(readers)
    return join_run.Answer(sum(reader.num_rows for reader in readers), table, stats.num_rows, stats.input_rows,
                           job.layout(), error, spilled_bytes=stats.spilled_bytes)


class Host:
    """Takes rows that are emitted."""

    def __init__(self, types, stops_after):
        self.types, self.stops_after = types, stops_after
        self.lock, self.rows, self.num_calls, self.error, self.is_late = threading.Lock(), [], 0, None, False

    def take(self, batch):
        with self.lock:
            try:
                self.rows += rows_of(batch, self.types)
            except Exception as error:  # whatever it is, it is raised when the library has returned
                self.error = error
            self.is_late |= self.stops_after is not None and self.num_calls >= self.stops_after
            self.num_calls += 1
            return self.stops_after is None or self.num_calls < self.stops_after


def _emitted(job, variant, feeder, keep, host):
    _append(job, feeder, variant, keep)
    if host.error:
        raise host.error
    if host.is_late and variant.num_threads() <= 1:
        raise Mismatch(f"the host was called {host.num_calls} times; it wanted no more rows after {host.stops_after}")
    return EmitAnswer(host.rows, host.stops_after)


_ENDS = {"aggregate": _aggregated, "sort": _sorted, "build": _built}

# ---- runs ------------------------------------------------------------------------------------------------------------


def _check_steps(kernel, job, case):
    """Each step with a kernel of its own has a job, whose kernels' shares add up; a filter in front of all others has
    seen all rows."""
    for found in re.finditer(r"^# (\d+): (\w+)", kernel.text("plan"), re.MULTILINE):
        number, word = int(found[1]), found[2]
        with job.step(number) as step:
            counters = step.counters()
        if counters.rows != counters.generic_rows + counters.compiled_rows:
            raise Mismatch(f"step {number}: {counters.rows} rows counted, of which {counters.generic_rows} generic and "
                           f"{counters.compiled_rows} compiled")
        is_first = (number, word) == (0, "filter") and not (job.account and job.account.num_refused)
        if is_first and counters.rows != case.num_rows:
            raise Mismatch(f"the filter in front has counted {counters.rows} rows; expected {case.num_rows}")


def _options(case, variant):
    options = memory_of(variant) or {"memory_limit": variant.memory_limit}
    if case.end.word == "aggregate":
        options |= aggregate_run.hints_of(case.end.case, variant.end)
    return options


def _run(library, case, variant, keep, accounts, answer):
    feeder = SourceFeeder(case, variant)
    may_be_written = any(table.spill for table in variant.tables.values())  # rows, which then have other numbers
    if not may_be_written and (feeder.vectors or not variant.is_concurrent()):
        answer.row_ids = feeder.row_ids()
    with contextlib.ExitStack() as handles:
        tables = _built_tables(library, case, variant, handles, keep, accounts)
        kernel = handles.enter_context(compiled(library, case.spec(), variant))
        host = None
        if case.end.word == "emit":
            host = Host([column.type for column in case.end.columns], variant.end.stops_after)
        account = None
        if variant.refused_share:
            rng = random.Random(f"refusals of {variant.layout_seed}")
            account = Account(rng, variant.refused_share, variant.most_refused)
            accounts.append(account)
        job = handles.enter_context(kernel.job(**_options(case, variant), tables=tables, account=account,
                                               on_rows=host.take if host else None))
        if not feeder.vectors:
            schema, columns, _ = feeder.arrow_children()
            job.bind_arrow(ROWS, schema, columns, [])
        if host:
            answer.end = _emitted(job, variant, feeder, keep, host)
        else:
            answer.end = _ENDS[case.end.word](job, case, variant, feeder, keep)
            answer.spilled_bytes = answer.end.spilled_bytes
        if host is None or host.stops_after is None:
            _check_steps(kernel, job, case)
        answer.num_spilled = sum(table.stats().spilled_bytes > 0 for table in tables)
        if answer.num_spilled and case.end.word == "aggregate":
            answer.end.order = None


def run(library, case, variant):
    """Raises Mismatch, or QuernError of compiling alone."""
    aggregate_run.register_host_function(library)
    keep, accounts, answer = [], [], Answer(concurrent=variant.num_threads() > 1)
    try:
        _run(library, case, variant, keep, accounts, answer)
    except quern_abi.QuernError as error:
        answer.error = error.with_traceback(None)
        answer.out_of_memory = _is_memory_refused(error, variant) or _lacks_row_ids(error, variant)
    del keep
    check_inputs_released()
    if any(account.used_bytes for account in accounts):
        raise Mismatch(f"bytes that are left in a host's account: {[account.used_bytes for account in accounts]}")
    answer.num_refused = sum(account.num_refused for account in accounts)
    return answer


def check_compiles_twice(library, case, variant):
    """The same spec gives the same kernels when it is made anew."""
    check_made_anew(library, case.spec(), variant)
