// SPDX-License-Identifier: Apache-2.0
//! Kernels.

use std::ffi::{CStr, CString};
use std::ptr;

use crate::error::{Error, Result, check};
use crate::sys;

/// Which code runs a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Generic at first, compiled as soon as that pays off. No call waits for the compiler.
    #[default]
    Auto,
    /// Compiled before [`Kernel::with`] returns; otherwise an error.
    Jit,
    /// Never compiled.
    Generic,
}

/// How a kernel is made. The default is that of [`Kernel::compile`].
#[derive(Debug, Clone, Default)]
pub struct KernelOptions {
    /// Which code runs it.
    pub engine: Engine,
    /// Plan parameters, `"name=value name=value"` (`quern dump plan` prints them); empty: none.
    pub params: String,
    /// Rows of all inputs that one thread is about to process: if they pay, compiling begins at once. 0: unknown.
    pub expected_rows: u64,
}

/// What a kernel or a job has counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Input rows, for a join of both sides.
    pub rows: u64,
    /// Batches of at most `batch_size` rows.
    pub batches: u64,
    /// Nanoseconds in calls of the operator, summed over threads.
    pub ns: u64,
    /// Rows that the generic kernel processed.
    pub generic_rows: u64,
    /// Rows that the compiled kernel processed.
    pub compiled_rows: u64,
}

impl Counters {
    pub(crate) fn read(get: impl FnOnce(*mut sys::quern_counters)) -> Self {
        let mut counters = sys::quern_counters {
            struct_size: size_of::<sys::quern_counters>(),
            rows: 0,
            batches: 0,
            ns: 0,
            tag_hits: 0,
            chain_steps: 0,
            growths: 0,
            generic_rows: 0,
            generic_batches: 0,
            compiled_rows: 0,
            compiled_batches: 0,
            prefetch_class: ptr::null(),
            tier: ptr::null(),
            cache: ptr::null(),
        };
        get(&raw mut counters);
        Self {
            rows: counters.rows,
            batches: counters.batches,
            ns: counters.ns,
            generic_rows: counters.generic_rows,
            compiled_rows: counters.compiled_rows,
        }
    }
}

/// The code for one spec. Jobs keep what they need of it, so that it may be dropped before them.
///
/// Making one costs 10 to 50 us, and less than 1 us for a spec that the process has made before.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) handle: *mut sys::quern_kernel,
}

// SAFETY: "any number of threads may share a kernel" (quern.h).
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Makes the kernel of a spec, which is compiled in the background when that pays off.
    ///
    /// ```
    /// let kernel = quern::Kernel::compile("filter i64 >= 5")?;
    /// assert_eq!(kernel.text("spec"), Some("filter i64 >= 5"));
    /// let wrong = quern::Kernel::compile("filter i65 >= 5").unwrap_err();
    /// assert!(wrong.text().starts_with("unknown column type: i65"));
    /// # Ok::<(), quern::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a spec that Quern does not know: the place to fall
    /// back to an operator of the host.
    pub fn compile(spec: &str) -> Result<Self> {
        Self::with(spec, &KernelOptions::default())
    }

    /// Makes the kernel of a spec.
    ///
    /// # Errors
    ///
    /// As [`Kernel::compile`]; with [`Engine::Jit`] also where the spec cannot be compiled.
    pub fn with(spec: &str, options: &KernelOptions) -> Result<Self> {
        // SAFETY: the function has no arguments.
        let version = unsafe { sys::quern_abi_version() };
        if version / 1000 != sys::ABI_VERSION_MAJOR {
            let accepted = sys::ABI_VERSION_MAJOR;
            return Err(Error::FailedPrecondition(format!("ABI of libquern.so: {version}; accepted: {accepted}xxx")));
        }
        let spec = CString::new(spec)?;
        let params = CString::new(options.params.as_str())?;
        let options = sys::quern_compile_options {
            struct_size: size_of::<sys::quern_compile_options>(),
            engine: match options.engine {
                Engine::Auto => 0,
                Engine::Jit => 1,
                Engine::Generic => 2,
            },
            when: 0,
            params: if params.is_empty() { ptr::null() } else { params.as_ptr() },
            expected_rows: options.expected_rows,
            compile_after_rows: 0,
            swap_waits: false,
        };
        let mut handle = ptr::null_mut();
        // SAFETY: all pointers are valid during the call.
        check(|error| unsafe { sys::quern_compile_with(spec.as_ptr(), &raw const options, &raw mut handle, error) })?;
        Ok(Self { handle })
    }

    /// Describes the kernel: "spec", "plan", "layout", "engine", "cache", "`compile_ms`", "`code_bytes`", "warning".
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let name = CString::new(name).ok()?;
        // SAFETY: the text lives as long as the kernel.
        unsafe {
            let text = sys::quern_kernel_text(self.handle, name.as_ptr());
            if text.is_null() { None } else { CStr::from_ptr(text).to_str().ok() }
        }
    }

    /// What all jobs of the kernel have counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        // SAFETY: the handle is valid.
        Counters::read(|counters| unsafe { sys::quern_kernel_get_counters(self.handle, counters) })
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once.
        unsafe { sys::quern_kernel_destroy(self.handle) }
    }
}
