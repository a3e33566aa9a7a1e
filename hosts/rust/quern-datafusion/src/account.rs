// SPDX-License-Identifier: Apache-2.0
//! Memory of jobs as reservations of a `DataFusion` pool.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use quern::{JobOptions, MemoryAccount, Spill};

/// One reservation of the pool, which the jobs of a fragment share.
#[derive(Debug)]
struct PoolAccount(MemoryReservation);

impl MemoryAccount for PoolAccount {
    fn reserve(&self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.0.try_grow(bytes).is_ok())
    }

    fn release(&self, bytes: u64) {
        if let Ok(bytes) = usize::try_from(bytes) {
            self.0.shrink(bytes);
        }
    }
}

/// The memory of a fragment: that of a pool which has a limit, or whatever the machine has.
#[derive(Debug)]
pub(crate) struct FragmentMemory {
    pool: Option<(Arc<PoolAccount>, u64)>,
    spill: Option<Spill>,
}

/// With less than this a job that writes rows cannot go on.
const LEAST_BYTES: u64 = 16 << 20;

impl FragmentMemory {
    pub(crate) fn of(context: &TaskContext) -> Self {
        let runtime = context.runtime_env();
        let MemoryLimit::Finite(limit) = runtime.memory_pool.memory_limit() else {
            return Self { pool: None, spill: None };
        };
        let reservation = MemoryConsumer::new("QuernExec").with_can_spill(true).register(&runtime.memory_pool);
        let disk = &runtime.disk_manager;
        // The manager makes its folder with its first file.
        let made = disk.tmp_files_enabled().then(|| disk.create_tmp_file("rows that QuernExec writes"));
        let folder = disk.temp_dir_paths().first().map(|folder| folder.to_string_lossy().into_owned());
        let spill =
            made.is_some_and(|file| file.is_ok()).then(|| Spill { folder, max_bytes: disk.max_temp_directory_size() });
        Self { pool: Some((Arc::new(PoolAccount(reservation)), limit as u64)), spill }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.pool.is_some()
    }

    /// Whether jobs write rows for which there is no room.
    pub(crate) fn spills(&self) -> bool {
        self.spill.is_some()
    }

    /// The options of the next job that keeps rows. Its limit is what the pool would give now, less what later
    /// consumers of a fair pool will take, so that the job begins to write before the pool refuses.
    pub(crate) fn job_options(&self) -> JobOptions {
        let Some((account, limit)) = &self.pool else { return JobOptions::default() };
        let granted = |bytes: &u64| {
            let granted = account.reserve(*bytes);
            if granted {
                account.release(*bytes);
            }
            granted
        };
        let room = (1..=6).rev().map(|eighths| limit / 8 * eighths).find(granted).unwrap_or(0);
        JobOptions {
            memory_limit: if self.spills() { (room / 4 * 3).max(LEAST_BYTES) } else { 0 },
            account: Some(Arc::clone(account) as Arc<dyn MemoryAccount>),
            spill: self.spill.clone(),
            ..JobOptions::default()
        }
    }
}
