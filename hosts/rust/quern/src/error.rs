// SPDX-License-Identifier: Apache-2.0
//! Errors of the library.

use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;

use crate::sys;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call has failed. The text is one line that names the value and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The caller's mistake: a wrong spec, a batch of other types.
    InvalidArgument(String),
    /// The memory limit, the host's account, or the machine's memory.
    ResourceExhausted(String),
    /// Calls in the wrong order, or a machine that cannot run this.
    FailedPrecondition(String),
    /// What this version does not do.
    Unimplemented(String),
    /// A defect of Quern.
    Internal(String),
    /// The host has stopped the job.
    Cancelled(String),
    /// Data without a result, such as a sum that does not fit its type.
    OutOfRange(String),
    /// A function of the host has failed.
    Aborted(String),
    /// Rows that could not be written to files, or did not come back as they were.
    Io(String),
}

impl Error {
    /// The line of text.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::InvalidArgument(text)
            | Self::ResourceExhausted(text)
            | Self::FailedPrecondition(text)
            | Self::Unimplemented(text)
            | Self::Internal(text)
            | Self::Cancelled(text)
            | Self::OutOfRange(text)
            | Self::Aborted(text)
            | Self::Io(text) => text,
        }
    }

    fn new(status: sys::quern_status, text: String) -> Self {
        match status {
            1 => Self::InvalidArgument(text),
            2 => Self::ResourceExhausted(text),
            3 => Self::FailedPrecondition(text),
            4 => Self::Unimplemented(text),
            6 => Self::Cancelled(text),
            7 => Self::OutOfRange(text),
            8 => Self::Aborted(text),
            9 => Self::Io(text),
            _ => Self::Internal(text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}

impl From<std::ffi::NulError> for Error {
    fn from(error: std::ffi::NulError) -> Self {
        Self::InvalidArgument(format!("text with a NUL byte: {error}; accepted: text without one"))
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::InvalidArgument(error.to_string())
    }
}

/// Calls a function of the ABI with an error object, and makes a result of its answer.
pub(crate) fn check(call: impl FnOnce(*mut sys::quern_error) -> sys::quern_status) -> Result<()> {
    let mut error = MaybeUninit::<sys::quern_error>::uninit();
    let status = call(error.as_mut_ptr());
    if status == sys::QUERN_OK {
        return Ok(());
    }
    // SAFETY: a function that fails has filled the error, whose text ends in a NUL.
    let text = unsafe { CStr::from_ptr((&raw const (*error.as_ptr()).text).cast()) };
    Err(Error::new(status, text.to_string_lossy().into_owned()))
}
