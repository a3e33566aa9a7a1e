// SPDX-License-Identifier: Apache-2.0
//! Pipelines.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::columns::Columns;
use crate::error::{Error, Result, check};
use crate::input::{BatchColumns, Input};
use crate::job::{Job, JobHandle, Port};
use crate::output::{Output, OutputOptions, Rows};
use crate::sys;

/// Sends batches through steps on their way into a job, some thousand rows at a time, so that what one step makes is
/// still in the cache when the next one reads it.
///
/// Rows have columns, numbered from 0. A filter takes rows away. A map adds its results behind the columns. A join, all
/// of whose work must be done, replaces the columns by those of its results. A pipeline may make any number of inputs,
/// one for each thread.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{AsArray, Int64Array, RecordBatch};
/// use arrow::datatypes::{DataType, Field, Int64Type, Schema};
/// use quern::{Job, Kernel, Pipeline, Port};
///
/// // SELECT sum(price * 2) WHERE price >= 5
/// let dear = Job::new(&Kernel::compile("filter i64 >= 5")?)?;
/// let double = Job::new(&Kernel::compile("map in=i64 out=multiply_checked($0,2:i64)")?)?;
/// let sum = Job::new(&Kernel::compile("aggregate aggs=sum(i64)")?)?;
/// let argument = Schema::new(vec![Field::new("doubled", DataType::Int64, false)]);
/// sum.bind(Port::Rows, &argument, &[], &[Some(0)])?;
///
/// let mut pipeline = Pipeline::new("i64");
/// pipeline.through(&dear, &[0], &[]).through(&double, &[0], &[]);
/// let mut input = pipeline.into_job(&sum, Port::Rows, &[], &[1])?;
/// input.append(RecordBatch::try_from_iter([("price", Arc::new(Int64Array::from(vec![3, 9, 5])) as _)])?)?;
/// input.finish()?;
/// sum.finalise()?;
/// let result = sum.output(Port::Rows)?.next().ok_or("no row")??;
/// assert_eq!(result.column(0).as_primitive::<Int64Type>().value(0), 28);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pipeline {
    columns: String,
    steps: Vec<Step>,
    copy_bytes: bool,
}

#[derive(Debug, Clone)]
struct Step {
    job: Job,
    keys: Vec<u32>,
    payload: Vec<u32>,
    is_reduction: bool,
}

impl Pipeline {
    /// Begins with the types of the columns of the batches that come in: `"i64,utf8_view:nullable"`.
    #[must_use]
    pub fn new(columns: &str) -> Self {
        Self { columns: columns.to_owned(), steps: vec![], copy_bytes: false }
    }

    /// Adds a step: a filter, a map, or a join whose work is done. `keys` and `payload` are the numbers of the columns
    /// that its batches have, in the order of its spec.
    pub fn through(&mut self, job: &Job, keys: &[u32], payload: &[u32]) -> &mut Self {
        self.steps.push(Step { job: job.clone(), keys: keys.to_vec(), payload: payload.to_vec(), is_reduction: false });
        self
    }

    /// Takes away rows that no build row of a join can match, and keeps the columns (a semi-join reduction): where a
    /// later step probes the join, or where the rows are for a table whose results do. Some such rows may pass, as few
    /// rows are tested where few are taken away.
    pub fn reduced(&mut self, join: &Job, keys: &[u32]) -> &mut Self {
        self.steps.push(Step { job: join.clone(), keys: keys.to_vec(), payload: vec![], is_reduction: true });
        self
    }

    /// Copies the bytes of strings that the job keeps. Needed where batches are not kept by the host, and not for
    /// batches that [`Input::append`] takes.
    pub fn copy_bytes(&mut self, copy: bool) -> &mut Self {
        self.copy_bytes = copy;
        self
    }

    /// Makes an input of the job that takes the rows. `keys` and `payload` are columns behind the last step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for columns of other types than a job takes.
    pub fn into_job(&self, job: &Job, port: Port, keys: &[u32], payload: &[u32]) -> Result<Input> {
        self.create(Some((job, port)), keys, payload, None, ptr::null_mut(), vec![Arc::clone(&job.handle)])
    }

    /// Ends the pipeline in the probe side of a join, whose rows come out as record batches, of at most `batch_rows`
    /// rows. `keys` and `payload` are the columns, behind the last step, that the join reads.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::into_job`].
    pub fn into_output(&self, join: &Job, keys: &[u32], payload: &[u32], batch_rows: u64) -> Result<PipelineOutput> {
        let options = OutputOptions { batch_rows, ..OutputOptions::default() };
        let sink = Box::new(UnsafeCell::new(Sink {
            output: join.output_with(Port::Probe, &options)?,
            num_keys: keys.len(),
            batches: vec![],
            error: None,
        }));
        let input = if self.steps.is_empty() {
            None
        } else {
            let columns: Vec<_> = keys.iter().chain(payload).copied().collect();
            Some(self.create(None, &columns, &[], Some(on_rows), sink.get().cast(), vec![])?)
        };
        let columns = keys.iter().chain(payload).map(|&number| number as usize).collect();
        Ok(PipelineOutput { input, columns, sink })
    }

    fn create(
        &self,
        job: Option<(&Job, Port)>,
        keys: &[u32],
        payload: &[u32],
        on_rows: Option<unsafe extern "C" fn(*mut c_void, *const sys::quern_batch) -> bool>,
        context: *mut c_void,
        mut jobs: Vec<Arc<JobHandle>>,
    ) -> Result<Input> {
        let columns = CString::new(self.columns.as_str())?;
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|step| sys::quern_pipeline_step {
                job: step.job.handle.raw,
                keys: step.keys.as_ptr(),
                num_keys: step.keys.len(),
                payload: step.payload.as_ptr(),
                num_payload: step.payload.len(),
                context: ptr::null_mut(),
            })
            .collect();
        let reductions: Vec<_> = self.steps.iter().map(|step| step.is_reduction).collect();
        let options = sys::quern_pipeline_options {
            struct_size: size_of::<sys::quern_pipeline_options>(),
            columns: columns.as_ptr(),
            steps: steps.as_ptr(),
            num_steps: steps.len(),
            keys: keys.as_ptr(),
            num_keys: keys.len(),
            payload: payload.as_ptr(),
            num_payload: payload.len(),
            copy_bytes: self.copy_bytes,
            piece_rows: 0,
            on_rows,
            context,
            reductions: reductions.as_ptr(),
        };
        let (raw_job, port) = job.map_or((ptr::null_mut(), Port::Rows), |(job, port)| (job.handle.raw, port));
        let mut raw = ptr::null_mut();
        // SAFETY: the options and all that they point to are valid during the call.
        check(|error| unsafe {
            sys::quern_pipeline_input_create(raw_job, port as c_int, &raw const options, &raw mut raw, error)
        })?;
        jobs.extend(self.steps.iter().map(|step| Arc::clone(&step.job.handle)));
        Ok(Input::new(raw, BatchColumns::OfPipeline(Columns::named(&self.columns)), jobs))
    }
}

/// The end of a pipeline in the probe side of a join. Made by [`Pipeline::into_output`]; used by one thread at a time.
pub struct PipelineOutput {
    /// None: there are no steps in front of the join, which reads the batches themselves.
    input: Option<Input>,
    /// Those of the batches that it reads.
    columns: Vec<usize>,
    /// The library has its address, and writes to it during calls of `input`.
    sink: Box<UnsafeCell<Sink>>,
}

// SAFETY: both parts are used by one thread at a time, which `&mut self` ensures.
unsafe impl Send for PipelineOutput {}

impl fmt::Debug for PipelineOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineOutput").field("input", &self.input).finish_non_exhaustive()
    }
}

impl PipelineOutput {
    /// Sends a batch through the steps and gives the rows that come out.
    ///
    /// # Errors
    ///
    /// The input is then of no further use.
    pub fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
        if let Some(input) = &mut self.input {
            let appended = input.append(batch);
            let sink = self.sink.get_mut();
            if let Some(error) = sink.error.take() {
                return Err(error);
            }
            appended?;
            return Ok(std::mem::take(&mut sink.batches));
        }
        let sink = self.sink.get_mut();
        sink.output.push(batch.project(&self.columns)?)?;
        sink.drain()?;
        Ok(std::mem::take(&mut sink.batches))
    }

    /// Ends the input: rows that the join has left may be read at [`Port::Unmatched`] when all inputs have ended.
    ///
    /// # Errors
    ///
    /// As [`Input::finish`].
    pub fn finish(self) -> Result<()> {
        self.input.map_or(Ok(()), Input::finish)
    }
}

/// What takes the rows of the last step.
struct Sink {
    output: Output,
    num_keys: usize,
    batches: Vec<RecordBatch>,
    error: Option<Error>,
}

impl Sink {
    fn take(&mut self, rows: &sys::quern_batch) -> Result<()> {
        // SAFETY: the batch has all columns as keys, of which the join's are the first ones.
        let payload = unsafe { rows.keys.add(self.num_keys) };
        let batch = sys::quern_batch {
            keys: rows.keys,
            payload,
            selection: rows.selection,
            num_rows: rows.num_rows,
            first_row_id: rows.first_row_id,
            struct_size: 0,
        };
        // SAFETY: the columns are the library's own, and stay in place until this function returns.
        unsafe { self.output.push_raw(&batch) }?;
        self.drain()
    }

    fn drain(&mut self) -> Result<()> {
        while let Rows::Batch(batch) = self.output.next_rows()? {
            self.batches.push(batch);
        }
        Ok(())
    }
}

unsafe extern "C" fn on_rows(context: *mut c_void, rows: *const sys::quern_batch) -> bool {
    // SAFETY: the context is the sink of a PipelineOutput whose `push` is running, and nothing else refers to it.
    let (sink, rows) = unsafe { (&mut *context.cast::<Sink>(), &*rows) };
    let taken = catch_unwind(AssertUnwindSafe(|| sink.take(rows)))
        .unwrap_or_else(|_| Err(Error::Internal("panic while rows of a pipeline were taken".to_owned())));
    taken.map_err(|error| sink.error = Some(error)).is_ok()
}
