// SPDX-License-Identifier: Apache-2.0
//! The host's account of memory.

use std::ffi::c_void;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the memory that a job takes, and may refuse it. Both functions are called on any thread that works for the
/// job, by several at once.
pub trait MemoryAccount: Debug + Send + Sync {
    /// Called before memory is taken. Where it answers false, the job writes rows to files if its options allow that;
    /// otherwise the call that needs the memory fails with [`Error::ResourceExhausted`](crate::Error).
    fn reserve(&self, bytes: u64) -> bool;
    /// Called after memory was freed.
    fn release(&self, bytes: u64);
}

/// What the library's pointer `host` points to.
pub(crate) struct Account {
    account: Arc<dyn MemoryAccount>,
    reserved: AtomicU64,
}

impl Account {
    pub(crate) fn new(account: Arc<dyn MemoryAccount>) -> Self {
        Self { account, reserved: AtomicU64::new(0) }
    }

    /// Whether all that was reserved has been released: nothing calls the account any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.reserved.load(Ordering::Acquire) == 0
    }

    pub(crate) unsafe extern "C" fn reserve(host: *mut c_void, bytes: u64) -> bool {
        // SAFETY: `host` is the Account of a job that still has handles.
        let this = unsafe { &*host.cast::<Self>() };
        // A panic must not cross the boundary of the ABI: memory is refused instead.
        let granted = catch_unwind(AssertUnwindSafe(|| this.account.reserve(bytes))).unwrap_or(false);
        if granted {
            this.reserved.fetch_add(bytes, Ordering::AcqRel);
        }
        granted
    }

    pub(crate) unsafe extern "C" fn release(host: *mut c_void, bytes: u64) {
        // SAFETY: as above.
        let this = unsafe { &*host.cast::<Self>() };
        let _ = catch_unwind(AssertUnwindSafe(|| this.account.release(bytes)));
        this.reserved.fetch_sub(bytes, Ordering::AcqRel);
    }
}
