// SPDX-License-Identifier: Apache-2.0
//! Outputs of jobs.

use std::ffi::c_int;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StructArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};

use crate::error::{Error, Result, check};
use crate::job::{JobHandle, Port};
use crate::sys;

/// Which rows an output gives, and how many at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// The most rows of a batch; 0: 65,536.
    pub batch_rows: u64,
    /// Of an aggregation: only the groups of partition `partition` of `num_partitions`; 0 of 0: all.
    pub partition: u32,
    /// Into how many partitions groups are divided, by the hash of their keys; 0: they are not.
    pub num_partitions: u32,
}

/// What an output answers.
#[derive(Debug)]
pub enum Rows {
    /// Rows; call again.
    Batch(RecordBatch),
    /// The output needs a batch ([`Output::push`]): of a probe or a map.
    NeedsInput,
    /// There are no more rows.
    Done,
}

/// Gives the rows of a job, as record batches whose arrays outlive it. An iterator of batches, except for outputs that
/// take batches.
pub struct Output {
    raw: *mut sys::quern_output,
    schema: SchemaRef,
    state: c_int,
    port: Port,
    job: Arc<JobHandle>,
}

// SAFETY: an output is used by one thread at a time (quern.h), which `&mut self` ensures.
unsafe impl Send for Output {}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("raw", &self.raw).field("schema", &self.schema).finish_non_exhaustive()
    }
}

const MORE: c_int = 0;
const NEEDS_INPUT: c_int = 1;

impl Output {
    pub(crate) fn create(job: &Arc<JobHandle>, port: Port, options: &OutputOptions) -> Result<Self> {
        let options = sys::quern_output_options {
            struct_size: size_of::<sys::quern_output_options>(),
            batch_rows: options.batch_rows,
            partition: options.partition,
            num_partitions: options.num_partitions,
            context: ptr::null_mut(),
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the schema is written by the call, and released when it is dropped.
        check(|error| unsafe { sys::quern_job_result_schema(job.raw, port as c_int, &raw mut schema, error) })?;
        let schema = Arc::new(Schema::try_from(&schema)?);
        let mut raw = ptr::null_mut();
        // SAFETY: the handle is valid, and so are the options during the call.
        check(|error| unsafe {
            sys::quern_output_create(job.raw, port as c_int, &raw const options, &raw mut raw, error)
        })?;
        let takes_batches = port == Port::Probe;
        let state = if takes_batches { NEEDS_INPUT } else { MORE };
        Ok(Self { raw, schema, state, port, job: Arc::clone(job) })
    }

    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts a batch of the probe side, or of a map. What is left of an earlier batch is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a batch of other types than those that were bound.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.job.check_batch(self.port, &batch)?;
        let mut array = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
        self.state = MORE;
        // SAFETY: the array is moved in.
        check(|error| unsafe { sys::quern_output_push_arrow(self.raw, &raw mut array, ptr::null(), error) })
    }

    /// Starts a batch of raw columns: the rows of a pipeline that ends in a function of the host.
    ///
    /// # Safety
    ///
    /// The columns are trusted, and must stay in place until [`Rows::NeedsInput`].
    ///
    /// # Errors
    ///
    /// As [`Output::push`].
    pub(crate) unsafe fn push_raw(&mut self, batch: &sys::quern_batch) -> Result<()> {
        self.state = MORE;
        // SAFETY: see above.
        check(|error| unsafe { sys::quern_output_push(self.raw, batch, error) })
    }

    /// The next rows.
    ///
    /// # Errors
    ///
    /// Rows are then lost. Only probes and maps go on, with a new batch.
    pub fn next_rows(&mut self) -> Result<Rows> {
        loop {
            if self.state != MORE {
                return Ok(if self.state == NEEDS_INPUT { Rows::NeedsInput } else { Rows::Done });
            }
            let mut array = FFI_ArrowArray::empty();
            let mut result = ptr::null();
            // SAFETY: the array is written by the call, and released when it is dropped.
            check(|error| unsafe { sys::quern_output_next_arrow(self.raw, &raw mut array, &raw mut result, error) })?;
            // SAFETY: the result is valid until the next call.
            self.state = unsafe { (*result).state };
            if array.is_empty() {
                continue;
            }
            return Ok(Rows::Batch(self.import(array)?));
        }
    }

    fn import(&self, array: FFI_ArrowArray) -> Result<RecordBatch> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())?;
        let num_rows = array.len();
        // SAFETY: the array has the schema that the library has given.
        let rows = StructArray::from(unsafe { from_ffi(array, &schema) }?);
        let (_, columns, _) = rows.into_parts();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(num_rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::Internal(error.to_string()))
    }
}

impl Iterator for Output {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_rows() {
            Ok(Rows::Batch(batch)) => Some(Ok(batch)),
            Ok(Rows::NeedsInput | Rows::Done) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once.
        unsafe { sys::quern_output_destroy(self.raw) }
    }
}
