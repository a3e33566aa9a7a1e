// SPDX-License-Identifier: Apache-2.0
//! The C ABI of `libquern.so` as it is declared in `hosts/c/quern.h`, version 2: the parts that this crate calls.
//!
//! The header describes each function. A test compiles a C program that compares the layout of the structs.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};

/// The major version of the ABI that these declarations describe.
pub const ABI_VERSION_MAJOR: u32 = 2;

pub type quern_status = c_int;
pub type quern_port = c_int;

pub const QUERN_OK: quern_status = 0;

#[repr(C)]
pub struct quern_error {
    pub status: quern_status,
    pub text: [c_char; 1020],
}

macro_rules! handles {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}
handles!(quern_kernel, quern_job, quern_input, quern_output);

#[repr(C)]
pub struct quern_compile_options {
    pub struct_size: usize,
    pub engine: c_int,
    pub when: c_int,
    pub params: *const c_char,
    pub expected_rows: u64,
    pub compile_after_rows: u64,
    pub swap_waits: bool,
}

#[repr(C)]
pub struct quern_column {
    pub validity: *const u8,
    pub values: *const c_void,
    pub offsets: *const c_void,
    pub buffers: *const *const u8,
    pub dictionary: *const quern_column,
    pub bit_offset: u64,
    pub selection: *const u32,
    pub flags: u32,
    pub value_bytes: u32,
    pub num_bytes: u64,
    pub null_count: u64,
    pub reserved: u64,
}

#[repr(C)]
pub struct quern_batch {
    pub keys: *const quern_column,
    pub payload: *const quern_column,
    pub selection: *const u32,
    pub num_rows: u64,
    pub first_row_id: u64,
    pub struct_size: usize,
}

#[repr(C)]
pub struct quern_arrow_rows {
    pub struct_size: usize,
    pub selection: *const u32,
    pub num_rows: u64,
    pub first_row_id: u64,
}

#[repr(C)]
pub struct quern_result {
    pub num_rows: u64,
    pub num_columns: usize,
    pub columns: *const quern_column,
    pub state: c_int,
    pub run: u32,
    pub position: u64,
}

#[repr(C)]
pub struct quern_key_range {
    pub key: u32,
    pub min: i64,
    pub max: i64,
}

#[repr(C)]
pub struct quern_spill_options {
    pub struct_size: usize,
    pub folder: *const c_char,
    pub max_bytes: u64,
    pub block_bytes: u64,
    pub write_block: Option<unsafe extern "C" fn(*mut c_void, *const c_void, u64, *mut u64) -> c_int>,
    pub read_block: Option<unsafe extern "C" fn(*mut c_void, u64, *mut c_void, u64) -> c_int>,
    pub free_block: Option<unsafe extern "C" fn(*mut c_void, u64, u64)>,
}

#[repr(C)]
pub struct quern_job_options {
    pub struct_size: usize,
    pub memory_limit: u64,
    pub num_runs: u32,
    pub expected_groups: u64,
    pub key_ranges: *const quern_key_range,
    pub num_key_ranges: usize,
    pub reserve: Option<unsafe extern "C" fn(*mut c_void, u64) -> bool>,
    pub release: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub host: *mut c_void,
    pub stop: *const c_int,
    pub residual: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *const u64, *const u64, u64, *mut u8) -> c_int>,
    pub residual_user: *mut c_void,
    pub row_id_bytes: u32,
    pub spill: *const quern_spill_options,
    pub tables: *const *mut quern_job,
    pub num_tables: usize,
    pub on_rows: Option<unsafe extern "C" fn(*mut c_void, *const quern_batch) -> bool>,
    pub rows_context: *mut c_void,
}

#[repr(C)]
pub struct quern_input_options {
    pub struct_size: usize,
    pub run: u32,
    pub copy_bytes: bool,
    pub format: u32,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct quern_pipeline_step {
    pub job: *mut quern_job,
    pub keys: *const u32,
    pub num_keys: usize,
    pub payload: *const u32,
    pub num_payload: usize,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct quern_pipeline_options {
    pub struct_size: usize,
    pub columns: *const c_char,
    pub steps: *const quern_pipeline_step,
    pub num_steps: usize,
    pub keys: *const u32,
    pub num_keys: usize,
    pub payload: *const u32,
    pub num_payload: usize,
    pub copy_bytes: bool,
    pub piece_rows: u64,
    pub on_rows: Option<unsafe extern "C" fn(*mut c_void, *const quern_batch) -> bool>,
    pub context: *mut c_void,
    pub reductions: *const bool,
}

#[repr(C)]
pub struct quern_output_options {
    pub struct_size: usize,
    pub batch_rows: u64,
    pub partition: u32,
    pub num_partitions: u32,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct quern_key_summary {
    pub struct_size: usize,
    pub num_rows: u64,
    pub num_null_rows: u64,
    pub num_keys: u64,
    pub num_keys_is_exact: bool,
    pub has_null: bool,
    pub has_range: bool,
    pub min: i64,
    pub max: i64,
    pub min_high: i64,
    pub max_high: i64,
}

#[repr(C)]
pub struct quern_job_stats {
    pub struct_size: usize,
    pub layout: *const c_char,
    pub input_rows: u64,
    pub num_rows: u64,
    pub used_bytes: u64,
    pub peak_bytes: u64,
    pub directory_bytes: u64,
    pub tuple_bytes: u64,
    pub table_bytes: u64,
    pub num_growths: u64,
    pub dropped_rows: u64,
    pub collided_rows: u64,
    pub entry_bytes: u64,
    pub key_bits: u32,
    pub prefetch_distance: u32,
    pub spilled_bytes: u64,
    pub spilled_rows: u64,
    pub unspilled_bytes: u64,
    pub spill_levels: u64,
    pub spill_waits: u64,
}

#[repr(C)]
pub struct quern_counters {
    pub struct_size: usize,
    pub rows: u64,
    pub batches: u64,
    pub ns: u64,
    pub tag_hits: u64,
    pub chain_steps: u64,
    pub growths: u64,
    pub generic_rows: u64,
    pub generic_batches: u64,
    pub compiled_rows: u64,
    pub compiled_batches: u64,
    pub prefetch_class: *const c_char,
    pub tier: *const c_char,
    pub cache: *const c_char,
}

unsafe extern "C" {
    pub fn quern_abi_version() -> u32;
    pub fn quern_version() -> *const c_char;
    pub fn quern_format_number() -> u32;

    pub fn quern_compile_with(
        spec: *const c_char,
        options: *const quern_compile_options,
        kernel: *mut *mut quern_kernel,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_kernel_destroy(kernel: *mut quern_kernel);
    pub fn quern_kernel_text(kernel: *const quern_kernel, name: *const c_char) -> *const c_char;
    pub fn quern_kernel_get_counters(kernel: *const quern_kernel, counters: *mut quern_counters);

    pub fn quern_job_create(
        kernel: *mut quern_kernel,
        options: *const quern_job_options,
        job: *mut *mut quern_job,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_job_destroy(job: *mut quern_job);
    pub fn quern_job_cancel(job: *mut quern_job);
    pub fn quern_job_bind_arrow(
        job: *mut quern_job,
        port: quern_port,
        schema: *const FFI_ArrowSchema,
        keys: *const i32,
        payload: *const i32,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_job_result_schema(
        job: *const quern_job,
        port: quern_port,
        schema: *mut FFI_ArrowSchema,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_job_work(job: *mut quern_job, state: *mut c_int, error: *mut quern_error) -> quern_status;
    pub fn quern_job_finalise(job: *mut quern_job, error: *mut quern_error) -> quern_status;
    pub fn quern_job_get_stats(job: *const quern_job, stats: *mut quern_job_stats);
    pub fn quern_job_used_bytes(job: *const quern_job) -> u64;
    pub fn quern_job_get_counters(job: *const quern_job, counters: *mut quern_counters);
    pub fn quern_job_filter_arrow(
        job: *const quern_job,
        batch: *const FFI_ArrowArray,
        selected: *const quern_arrow_rows,
        rows: *mut u32,
        bitmap: *mut u8,
        num_rows: *mut u64,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_job_summarise_key(
        job: *const quern_job,
        key: u32,
        summary: *mut quern_key_summary,
        error: *mut quern_error,
    ) -> quern_status;

    pub fn quern_input_create(
        job: *mut quern_job,
        port: quern_port,
        options: *const quern_input_options,
        input: *mut *mut quern_input,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_input_destroy(input: *mut quern_input);
    pub fn quern_input_append_arrow(
        input: *mut quern_input,
        batch: *mut FFI_ArrowArray,
        rows: *const quern_arrow_rows,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_input_finish(input: *mut quern_input, error: *mut quern_error) -> quern_status;
    pub fn quern_pipeline_input_create(
        job: *mut quern_job,
        port: quern_port,
        options: *const quern_pipeline_options,
        input: *mut *mut quern_input,
        error: *mut quern_error,
    ) -> quern_status;

    pub fn quern_output_create(
        job: *mut quern_job,
        port: quern_port,
        options: *const quern_output_options,
        output: *mut *mut quern_output,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_output_destroy(output: *mut quern_output);
    pub fn quern_output_push(
        output: *mut quern_output,
        batch: *const quern_batch,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_output_push_arrow(
        output: *mut quern_output,
        batch: *mut FFI_ArrowArray,
        rows: *const quern_arrow_rows,
        error: *mut quern_error,
    ) -> quern_status;
    pub fn quern_output_next_arrow(
        output: *mut quern_output,
        rows: *mut FFI_ArrowArray,
        result: *mut *const quern_result,
        error: *mut quern_error,
    ) -> quern_status;
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::mem::offset_of;
    use std::process::{Command, Stdio};

    use super::*;

    /// A C program that compiles where the structs of `quern.h` lie as those above.
    fn assertions() -> Result<String, std::fmt::Error> {
        let mut text = String::from("#include <stddef.h>\n#include \"quern.h\"\n");
        macro_rules! layout {
            ($name:ident: $($member:ident),*) => {
                writeln!(
                    text,
                    "_Static_assert(sizeof({0}) == {1}, \"{0}\");",
                    stringify!($name),
                    size_of::<$name>()
                )?;
                $(writeln!(
                    text,
                    "_Static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1}\");",
                    stringify!($name),
                    stringify!($member),
                    offset_of!($name, $member)
                )?;)*
            };
        }
        layout!(quern_error: status, text);
        layout!(quern_compile_options: struct_size, engine, when, params, expected_rows, compile_after_rows,
            swap_waits);
        layout!(quern_column: validity, values, offsets, buffers, dictionary, bit_offset, selection, flags, value_bytes,
            num_bytes, null_count, reserved);
        layout!(quern_batch: keys, payload, selection, num_rows, first_row_id, struct_size);
        layout!(quern_arrow_rows: struct_size, selection, num_rows, first_row_id);
        layout!(quern_result: num_rows, num_columns, columns, state, run, position);
        layout!(quern_key_range: key, min, max);
        layout!(quern_spill_options: struct_size, folder, max_bytes, block_bytes, write_block, read_block, free_block);
        layout!(quern_job_options: struct_size, memory_limit, num_runs, expected_groups, key_ranges, num_key_ranges,
            reserve, release, host, stop, residual, residual_user, row_id_bytes, spill, tables, num_tables, on_rows,
            rows_context);
        layout!(quern_input_options: struct_size, run, copy_bytes, format, context);
        layout!(quern_pipeline_step: job, keys, num_keys, payload, num_payload, context);
        layout!(quern_pipeline_options: struct_size, columns, steps, num_steps, keys, num_keys, payload, num_payload,
            copy_bytes, piece_rows, on_rows, context, reductions);
        layout!(quern_output_options: struct_size, batch_rows, partition, num_partitions, context);
        layout!(quern_key_summary: struct_size, num_rows, num_null_rows, num_keys, num_keys_is_exact, has_null,
            has_range, min, max, min_high, max_high);
        layout!(quern_job_stats: struct_size, layout, input_rows, num_rows, used_bytes, peak_bytes, directory_bytes,
            tuple_bytes, table_bytes, num_growths, dropped_rows, collided_rows, entry_bytes, key_bits,
            prefetch_distance, spilled_bytes, spilled_rows, unspilled_bytes, spill_levels, spill_waits);
        layout!(quern_counters: struct_size, rows, batches, ns, tag_hits, chain_steps, growths, generic_rows,
            generic_batches, compiled_rows, compiled_batches, prefetch_class, tier, cache);
        Ok(text)
    }

    #[test]
    fn structs_lie_as_in_the_header() -> Result<(), Box<dyn std::error::Error>> {
        let header_folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../c");
        let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args(["-std=c11", "-fsyntax-only", "-I", header_folder, "-xc", "-"])
            .stdin(Stdio::piped())
            .spawn()?;
        compiler.stdin.take().ok_or("no stdin")?.write_all(assertions()?.as_bytes())?;
        assert!(compiler.wait()?.success());
        Ok(())
    }

    #[test]
    fn the_library_has_this_version() {
        // SAFETY: the function has no arguments.
        assert_eq!(unsafe { quern_abi_version() } / 1000, ABI_VERSION_MAJOR);
    }
}
