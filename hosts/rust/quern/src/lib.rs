// SPDX-License-Identifier: Apache-2.0
//! Query kernels for Rust: hash joins, hash aggregations, sorts, set operations, filters and computed columns, compiled
//! for one spec on the machine that runs them. A safe interface to the C ABI of `libquern.so`.
//!
//! A [`Kernel`] is made from a *spec*, one line of text. A [`Job`] is one run of a kernel. Record batches of
//! [`arrow`](https://docs.rs/arrow) enter it by an [`Input`] and leave it by an [`Output`], of which each thread makes
//! its own; no array is copied on its way in or out. The programs in `examples` aggregate, join and spill.
//!
//! ```
//! use std::sync::Arc;
//! use arrow::array::{AsArray, Float64Array, Int64Array, RecordBatch};
//! use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
//! use quern::{Job, Kernel, Port};
//!
//! let schema = Arc::new(Schema::new(vec![
//!     Field::new("shop", DataType::Int64, false),
//!     Field::new("price", DataType::Float64, false),
//! ]));
//! let sales = RecordBatch::try_new(
//!     schema.clone(),
//!     vec![Arc::new(Int64Array::from(vec![1, 2, 1])), Arc::new(Float64Array::from(vec![2.5, 4.0, 1.5]))],
//! )?;
//!
//! let job = Job::new(&Kernel::compile("aggregate keys=i64 aggs=sum(f64)")?)?;
//! job.bind(Port::Rows, &schema, &[Some(0)], &[Some(1)])?;
//! let mut input = job.input(Port::Rows)?;
//! input.append(sales)?;
//! input.finish()?;
//! job.finalise()?;
//!
//! let mut sums = vec![];
//! for groups in job.output(Port::Rows)? {
//!     let groups = groups?;
//!     let keys = groups.column(0).as_primitive::<Int64Type>();
//!     let values = groups.column(1).as_primitive::<Float64Type>();
//!     sums.extend(keys.values().iter().copied().zip(values.values().iter().copied()));
//! }
//! sums.sort_by_key(|group| group.0);
//! assert_eq!(sums, [(1, 4.0), (2, 4.0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Several operators in one pass are a [`Pipeline`]. The page `docs/spec.md` of Quern has the specs,
//! `docs/embedding.md` says what a host may rely on.
//!
//! **Threads.** [`Kernel`] and [`Job`] may be shared. An [`Input`] and an [`Output`] may move from thread to thread,
//! and are used by one at a time. No function waits for another thread, except [`Job::finalise`].
//!
//! **Finding the library.** The build script looks in the folder that the environment variable `QUERN_LIB_DIR` names,
//! else in the build folder of the source tree that this crate belongs to.

mod columns;
mod error;
mod input;
mod job;
mod kernel;
mod memory;
mod output;
mod pipeline;
mod sys;

pub use columns::type_name;
pub use error::{Error, Result};
pub use input::Input;
pub use job::{Job, JobOptions, JobStats, KeySummary, Port, Spill, Work};
pub use kernel::{Counters, Engine, Kernel, KernelOptions};
pub use memory::MemoryAccount;
pub use output::{Output, OutputOptions, Rows};
pub use pipeline::{Pipeline, PipelineOutput};

use std::ffi::CStr;

/// The version of the library that was loaded: "0.1.0".
#[must_use]
pub fn version() -> &'static str {
    // SAFETY: the function has no arguments, and its result is static.
    unsafe { CStr::from_ptr(sys::quern_version()) }.to_str().unwrap_or("unknown")
}

/// The number of the format of states of groups, partitions of keys and sorted runs. Machines that exchange them must
/// have libraries with the same number.
#[must_use]
pub fn format_number() -> u32 {
    // SAFETY: the function has no arguments.
    unsafe { sys::quern_format_number() }
}
