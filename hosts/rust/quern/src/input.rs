// SPDX-License-Identifier: Apache-2.0
//! Inputs of jobs.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StructArray};
use arrow::ffi::FFI_ArrowArray;

use crate::columns::Columns;
use crate::error::{Result, check};
use crate::job::{JobHandle, Port};
use crate::sys;

/// Takes batches into a job. Made by [`Job::input`](crate::Job::input) or by a [`Pipeline`](crate::Pipeline).
/// Dropping one that has not finished drops its rows.
pub struct Input {
    raw: *mut sys::quern_input,
    columns: BatchColumns,
    /// The first one takes the rows, where one does.
    jobs: Vec<Arc<JobHandle>>,
}

/// What says which columns batches have.
pub(crate) enum BatchColumns {
    /// What is bound to the port of the first job.
    OfPort(Port),
    /// The first step of a pipeline.
    OfPipeline(Columns),
}

// SAFETY: an input is used by one thread at a time (quern.h), which `&mut self` ensures.
unsafe impl Send for Input {}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl Input {
    pub(crate) fn new(raw: *mut sys::quern_input, columns: BatchColumns, jobs: Vec<Arc<JobHandle>>) -> Self {
        Self { raw, columns, jobs }
    }

    /// Adds a batch. Its arrays are not copied; a join or a sort keeps those with strings for as long as it needs them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a batch of other types than those that were bound,
    /// or that the pipeline begins with; nothing is added then. After
    /// [`Error::ResourceExhausted`](crate::Error::ResourceExhausted) the same batch may be appended again. After any
    /// other failure the job is of no further use.
    pub fn append(&mut self, batch: RecordBatch) -> Result<()> {
        match &self.columns {
            BatchColumns::OfPort(port) => self.jobs[0].check_batch(*port, &batch)?,
            BatchColumns::OfPipeline(columns) => columns.check(&batch)?,
        }
        let mut array = FFI_ArrowArray::new(&StructArray::from(batch).into_data());
        // SAFETY: the array is moved in, which leaves one that is released.
        check(|error| unsafe { sys::quern_input_append_arrow(self.raw, &raw mut array, ptr::null(), error) })
    }

    /// Hands the rows over to the job.
    ///
    /// # Errors
    ///
    /// [`Error::ResourceExhausted`](crate::Error::ResourceExhausted), and [`Error::Io`](crate::Error::Io) where rows
    /// could not be written.
    pub fn finish(self) -> Result<()> {
        // SAFETY: the handle is valid, and destroyed afterwards.
        check(|error| unsafe { sys::quern_input_finish(self.raw, error) })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once.
        unsafe { sys::quern_input_destroy(self.raw) }
    }
}
