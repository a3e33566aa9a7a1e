// SPDX-License-Identifier: Apache-2.0
//! Jobs.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch, StructArray};
use arrow::datatypes::Schema;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};

use crate::columns::Columns;
use crate::error::{Error, Result, check};
use crate::input::{BatchColumns, Input};
use crate::kernel::{Counters, Kernel};
use crate::memory::{Account, MemoryAccount};
use crate::output::{Output, OutputOptions};
use crate::sys;

/// Where rows enter and leave a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Port {
    /// The rows of an aggregation, a sort, a merge or a map.
    Rows = 0,
    /// The side of a join of which a table is built.
    Build = 1,
    /// The other side. Its outputs take batches, too.
    Probe = 2,
    /// The build rows of a join that come out on their own, and the rows of keys that it has written to files.
    Unmatched = 3,
    /// Groups with their states, for another aggregation of the same spec.
    States = 4,
    /// The row of a sort with a limit that later rows must precede.
    Threshold = 5,
    /// The left side of a set operation.
    Left = 6,
    /// Its right side.
    Right = 7,
}

/// Where a job writes rows for which its memory has no room: nameless files, which the system removes however the
/// process ends.
#[derive(Debug, Clone, Default)]
pub struct Spill {
    /// The folder of the files; none: `QUERN_SPILL_DIR` of the environment, else `/var/tmp`.
    pub folder: Option<String>,
    /// Bytes that the files may take at one time; 0: no limit.
    pub max_bytes: u64,
}

/// How a job runs. The default has no limits.
#[derive(Debug, Clone, Default)]
pub struct JobOptions {
    /// Bytes that tables, rows and results may take; 0: no limit.
    pub memory_limit: u64,
    /// The host's account of memory.
    pub account: Option<Arc<dyn MemoryAccount>>,
    /// None: rows stay in memory. With it a join of any kind is read at [`Port::Unmatched`], too.
    pub spill: Option<Spill>,
    /// Merge so many sorted runs, by the kernel of a sort; 0: no merge.
    pub num_runs: u32,
    /// A hint for an aggregation; 0: unknown.
    pub expected_groups: u64,
}

/// What a job has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobStats {
    /// How rows are laid out, or were sorted: "open", "unchained", "radix"; empty before all work is done.
    pub layout: &'static str,
    /// Rows that came in; of a join, its build side's.
    pub input_rows: u64,
    /// Rows of a join's table; groups; a sort's result.
    pub num_rows: u64,
    /// Bytes of memory now.
    pub used_bytes: u64,
    /// The most memory that was taken.
    pub peak_bytes: u64,
    /// Bytes that were written to files.
    pub spilled_bytes: u64,
    /// Rows that were written to files.
    pub spilled_rows: u64,
}

/// One key of a join's build rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeySummary {
    /// All build rows.
    pub num_rows: u64,
    /// Different keys, each of all columns together, or more.
    pub num_keys: u64,
    /// The smallest and the largest value, of an integer, date, time or decimal; none where there is no value.
    pub range: Option<(i128, i128)>,
}

/// Whether there is more work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Call again, from any thread.
    More,
    /// Other threads do all that can be done now.
    Busy,
    /// Outputs may be made.
    Done,
}

/// The handle, and what must live as long as any handle of the job.
pub(crate) struct JobHandle {
    pub(crate) raw: *mut sys::quern_job,
    account: Option<Box<Account>>,
    /// The columns of batches, by port.
    bound: Mutex<HashMap<Port, Arc<Columns>>>,
}

impl JobHandle {
    /// Whether a batch has the columns that are bound to a port.
    ///
    /// # Errors
    ///
    /// [`Error::FailedPrecondition`] where none are, and [`Error::InvalidArgument`] for other ones.
    pub(crate) fn check_batch(&self, port: Port, batch: &RecordBatch) -> Result<()> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner).get(&port).map(Arc::clone);
        bound
            .ok_or_else(|| {
                Error::FailedPrecondition(format!("batch for port {port:?} without columns; accepted: after Job::bind"))
            })?
            .check(batch)
    }
}

// SAFETY: "any number of threads may share a job" (quern.h), and accounts are Send and Sync.
unsafe impl Send for JobHandle {}
// SAFETY: as above.
unsafe impl Sync for JobHandle {}

impl Drop for JobHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once, after all inputs and outputs, which hold it.
        unsafe { sys::quern_job_destroy(self.raw) };
        // Another job's pipeline may still use this job's table. It then outlives its handles, and so must the account.
        if let Some(account) = self.account.take()
            && !account.is_settled()
        {
            Box::leak(account);
        }
    }
}

/// One run of a kernel. A clone is the same job.
#[derive(Clone)]
pub struct Job {
    pub(crate) handle: Arc<JobHandle>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("handle", &self.handle.raw).finish()
    }
}

impl Job {
    /// Makes a job without limits.
    ///
    /// # Errors
    ///
    /// Where the machine has no memory.
    pub fn new(kernel: &Kernel) -> Result<Self> {
        Self::with(kernel, &JobOptions::default())
    }

    /// Makes a job. Memory is taken when rows come.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for options that do not fit the kernel.
    pub fn with(kernel: &Kernel, options: &JobOptions) -> Result<Self> {
        let account = options.account.clone().map(|account| Box::new(Account::new(account)));
        let folder = options.spill.as_ref().and_then(|spill| spill.folder.as_deref()).map(CString::new).transpose()?;
        let spill = options.spill.as_ref().map(|spill| sys::quern_spill_options {
            struct_size: size_of::<sys::quern_spill_options>(),
            folder: folder.as_ref().map_or(ptr::null(), |folder| folder.as_ptr()),
            max_bytes: spill.max_bytes,
            block_bytes: 0,
            write_block: None,
            read_block: None,
            free_block: None,
        });
        let raw_options = sys::quern_job_options {
            struct_size: size_of::<sys::quern_job_options>(),
            memory_limit: options.memory_limit,
            num_runs: options.num_runs,
            expected_groups: options.expected_groups,
            key_ranges: ptr::null(),
            num_key_ranges: 0,
            reserve: account.as_ref().map(|_| Account::reserve as _),
            release: account.as_ref().map(|_| Account::release as _),
            host: account.as_deref().map_or(ptr::null_mut(), |account| ptr::from_ref(account).cast_mut().cast()),
            stop: ptr::null(),
            residual: None,
            residual_user: ptr::null_mut(),
            row_id_bytes: 0,
            spill: spill.as_ref().map_or(ptr::null(), ptr::from_ref),
            tables: ptr::null(),
            num_tables: 0,
            on_rows: None,
            rows_context: ptr::null_mut(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the kernel is valid, and so are the options during the call; the account is boxed and lives as long
        // as the handle.
        check(|error| unsafe { sys::quern_job_create(kernel.handle, &raw const raw_options, &raw mut raw, error) })?;
        Ok(Self { handle: Arc::new(JobHandle { raw, account, bound: Mutex::default() }) })
    }

    /// Says which columns of its batches a port reads: by number in `schema`, in the order of the spec. `None` stands
    /// for a `rowid`. Call it before the port's first batch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a column of another type than the spec's.
    pub fn bind(&self, port: Port, schema: &Schema, keys: &[Option<usize>], payload: &[Option<usize>]) -> Result<()> {
        let columns = Columns::bound(schema);
        let schema = FFI_ArrowSchema::try_from(schema)?;
        let (keys, payload) = (child_numbers(keys)?, child_numbers(payload)?);
        // SAFETY: the schema is only read; the arrays have as many elements as the spec has columns, or the call fails.
        check(|error| unsafe {
            sys::quern_job_bind_arrow(
                self.handle.raw,
                port as c_int,
                &raw const schema,
                keys.as_ptr(),
                payload.as_ptr(),
                error,
            )
        })?;
        self.handle.bound.lock().unwrap_or_else(PoisonError::into_inner).insert(port, Arc::new(columns));
        Ok(())
    }

    /// The schema of the batches that come out of a port, once all inputs are bound.
    ///
    /// # Errors
    ///
    /// [`Error::FailedPrecondition`] before all inputs are bound.
    pub fn result_schema(&self, port: Port) -> Result<Schema> {
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the schema is written by the call, and released when it is dropped.
        check(|error| unsafe { sys::quern_job_result_schema(self.handle.raw, port as c_int, &raw mut schema, error) })?;
        Ok(Schema::try_from(&schema)?)
    }

    /// Makes an input for batches whose columns were [bound](Job::bind).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a port that the job does not have.
    pub fn input(&self, port: Port) -> Result<Input> {
        let mut raw = ptr::null_mut();
        // SAFETY: the handle is valid.
        check(|error| unsafe {
            sys::quern_input_create(self.handle.raw, port as c_int, ptr::null(), &raw mut raw, error)
        })?;
        Ok(Input::new(raw, BatchColumns::OfPort(port), vec![Arc::clone(&self.handle)]))
    }

    /// Does one piece of the work between the last input and the first output. Never waits for another thread.
    ///
    /// # Errors
    ///
    /// The same for all threads.
    pub fn work(&self) -> Result<Work> {
        let mut state: c_int = 0;
        // SAFETY: the handle is valid.
        check(|error| unsafe { sys::quern_job_work(self.handle.raw, &raw mut state, error) })?;
        Ok(match state {
            0 => Work::More,
            1 => Work::Busy,
            _ => Work::Done,
        })
    }

    /// Does all of that work, together with the other threads that call it, and may wait for them.
    ///
    /// # Errors
    ///
    /// The same for all threads.
    pub fn finalise(&self) -> Result<()> {
        // SAFETY: the handle is valid.
        check(|error| unsafe { sys::quern_job_finalise(self.handle.raw, error) })
    }

    /// Makes an output for one thread. Outputs of a job share its rows.
    ///
    /// # Errors
    ///
    /// [`Error::FailedPrecondition`] before all work is done.
    pub fn output(&self, port: Port) -> Result<Output> {
        self.output_with(port, &OutputOptions::default())
    }

    /// Makes an output with options.
    ///
    /// # Errors
    ///
    /// As [`Job::output`].
    pub fn output_with(&self, port: Port, options: &OutputOptions) -> Result<Output> {
        Output::create(&self.handle, port, options)
    }

    /// The numbers of the rows of a batch for which the condition of a filter is true.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow::array::{Int64Array, RecordBatch};
    /// use quern::{Job, Kernel, Port};
    ///
    /// let batch = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![3, 9, 5, 4])) as _)])?;
    /// let filter = Job::new(&Kernel::compile("filter i64:nullable >= 5")?)?;
    /// filter.bind(Port::Rows, &batch.schema(), &[Some(0)], &[])?;
    /// assert_eq!(filter.filter(batch)?, [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a job of another operator, or a batch of other types.
    pub fn filter(&self, batch: RecordBatch) -> Result<Vec<u32>> {
        let mut rows = vec![0; batch.num_rows()];
        let array = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
        let mut num_rows = 0;
        // SAFETY: `rows` has room for all rows; the array remains ours.
        check(|error| unsafe {
            sys::quern_job_filter_arrow(
                self.handle.raw,
                &raw const array,
                ptr::null(),
                rows.as_mut_ptr(),
                ptr::null_mut(),
                &raw mut num_rows,
                error,
            )
        })?;
        rows.truncate(usize::try_from(num_rows).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// Summarises a key of a join's build rows, by its number in the spec, once all work on them is done.
    ///
    /// # Errors
    ///
    /// [`Error::FailedPrecondition`] before that.
    pub fn summarise_key(&self, key: u32) -> Result<KeySummary> {
        let mut summary = sys::quern_key_summary {
            struct_size: size_of::<sys::quern_key_summary>(),
            num_rows: 0,
            num_null_rows: 0,
            num_keys: 0,
            num_keys_is_exact: false,
            has_null: false,
            has_range: false,
            min: 0,
            max: 0,
            min_high: 0,
            max_high: 0,
        };
        // SAFETY: the handle is valid.
        check(|error| unsafe { sys::quern_job_summarise_key(self.handle.raw, key, &raw mut summary, error) })?;
        let wide = |low: i64, high: i64| (i128::from(high) << 64) | i128::from(low.cast_unsigned());
        Ok(KeySummary {
            num_rows: summary.num_rows,
            num_keys: summary.num_keys,
            range: summary
                .has_range
                .then(|| (wide(summary.min, summary.min_high), wide(summary.max, summary.max_high))),
        })
    }

    /// Stops the job: its calls answer [`Error::Cancelled`] from now on, those in progress after some milliseconds.
    pub fn cancel(&self) {
        // SAFETY: the handle is valid.
        unsafe { sys::quern_job_cancel(self.handle.raw) }
    }

    /// What the job has done. Must not be called while other threads append or work.
    #[must_use]
    pub fn stats(&self) -> JobStats {
        // SAFETY: all members may be zero.
        let mut stats: sys::quern_job_stats = unsafe { std::mem::zeroed() };
        stats.struct_size = size_of::<sys::quern_job_stats>();
        // SAFETY: the handle is valid.
        unsafe { sys::quern_job_get_stats(self.handle.raw, &raw mut stats) };
        JobStats {
            layout: if stats.layout.is_null() {
                ""
            } else {
                // SAFETY: the text is static.
                unsafe { CStr::from_ptr(stats.layout) }.to_str().unwrap_or("")
            },
            input_rows: stats.input_rows,
            num_rows: stats.num_rows,
            used_bytes: stats.used_bytes,
            peak_bytes: stats.peak_bytes,
            spilled_bytes: stats.spilled_bytes,
            spilled_rows: stats.spilled_rows,
        }
    }

    /// The bytes of memory that the job has now. At any time, also while other threads work for it.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        // SAFETY: the handle is valid.
        unsafe { sys::quern_job_used_bytes(self.handle.raw) }
    }

    /// What the job has counted. At any time.
    #[must_use]
    pub fn counters(&self) -> Counters {
        // SAFETY: the handle is valid.
        Counters::read(|counters| unsafe { sys::quern_job_get_counters(self.handle.raw, counters) })
    }
}

fn child_numbers(columns: &[Option<usize>]) -> Result<Vec<i32>> {
    columns
        .iter()
        .map(|column| {
            column.map_or(Ok(-1), |number| {
                i32::try_from(number)
                    .map_err(|_| Error::InvalidArgument(format!("number of a column: {number}; accepted: below 2^31")))
            })
        })
        .collect()
}
