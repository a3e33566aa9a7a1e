// SPDX-License-Identifier: Apache-2.0
//! Memory of jobs as reservations of a `DataFusion` pool.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use quern::{JobOptions, MemoryAccount, Spill};

/// What the jobs of a fragment reserve of a pool, together. A fair pool has a share for each consumer that can spill,
/// and `DataFusion`'s operators are one in each partition; so is a fragment. They are registered when the first job
/// needs memory, so that a sort which still waits for the rows of the fragment below has no share of that one's.
#[derive(Debug)]
struct PoolAccount {
    pool: Arc<dyn MemoryPool>,
    partitions: usize,
    shares: Mutex<Option<Shares>>,
}

#[derive(Debug)]
struct Shares(Vec<MemoryReservation>);

impl Shares {
    fn registered(account: &PoolAccount) -> Self {
        let register = |_| MemoryConsumer::new("QuernExec").with_can_spill(true).register(&account.pool);
        Self((0..account.partitions).map(register).collect())
    }

    /// Takes memory from the share that has most left, or the same from each.
    fn try_grow(&self, bytes: usize) -> bool {
        if let Some(least) = self.0.iter().min_by_key(|share| share.size())
            && least.try_grow(bytes).is_ok()
        {
            return true;
        }
        let mut grown = 0;
        for (number, share) in self.0.iter().enumerate() {
            let part = (bytes - grown).div_ceil(self.0.len() - number);
            if share.try_grow(part).is_err() {
                self.shrink(grown);
                return false;
            }
            grown += part;
        }
        true
    }

    fn shrink(&self, bytes: usize) {
        let mut left = bytes;
        while left != 0 {
            let Some(largest) = self.0.iter().max_by_key(|share| share.size()).filter(|share| share.size() != 0) else {
                return;
            };
            let part = largest.size().min(left);
            largest.shrink(part);
            left -= part;
        }
    }
}

impl PoolAccount {
    /// Calls a function with the shares, which it may register.
    fn with_shares<T>(&self, function: impl FnOnce(&mut Option<Shares>) -> T) -> T {
        function(&mut self.shares.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How much could be reserved now, to a 64th of the pool.
    fn room(&self, limit: u64) -> u64 {
        self.with_shares(|registered| {
            let others = registered.is_none().then(|| Shares::registered(self));
            let Some(shares) = registered.as_ref().or(others.as_ref()) else { return 0 };
            let granted = |bytes: &u64| {
                let granted = usize::try_from(*bytes).ok().filter(|bytes| shares.try_grow(*bytes));
                granted.inspect(|bytes| shares.shrink(*bytes)).is_some()
            };
            (1..=64).rev().map(|parts| limit / 64 * parts).find(granted).unwrap_or(0)
        })
    }
}

impl MemoryAccount for PoolAccount {
    fn reserve(&self, bytes: u64) -> bool {
        self.with_shares(|shares| {
            let shares = shares.get_or_insert_with(|| Shares::registered(self));
            usize::try_from(bytes).is_ok_and(|bytes| shares.try_grow(bytes))
        })
    }

    fn release(&self, bytes: u64) {
        self.with_shares(|shares| {
            if let (Some(shares), Ok(bytes)) = (shares, usize::try_from(bytes)) {
                shares.shrink(bytes);
            }
        });
    }
}

/// The memory of a fragment: that of a pool which has a limit, or whatever the machine has.
#[derive(Debug)]
pub(crate) struct FragmentMemory {
    pool: Option<(Arc<PoolAccount>, u64)>,
    spill: Option<Spill>,
}

/// With less than this a job that writes rows cannot go on.
pub(crate) const LEAST_BYTES: u64 = 16 << 20;

impl FragmentMemory {
    pub(crate) fn of(context: &TaskContext) -> Self {
        let runtime = context.runtime_env();
        let MemoryLimit::Finite(limit) = runtime.memory_pool.memory_limit() else {
            return Self { pool: None, spill: None };
        };
        let partitions = context.session_config().target_partitions().max(1);
        let account = PoolAccount { pool: Arc::clone(&runtime.memory_pool), partitions, shares: Mutex::new(None) };
        let disk = &runtime.disk_manager;
        // The manager makes its folder with its first file.
        let made = disk.tmp_files_enabled().then(|| disk.create_tmp_file("rows that QuernExec writes"));
        let folder = disk.temp_dir_paths().first().map(|folder| folder.to_string_lossy().into_owned());
        let spill =
            made.is_some_and(|file| file.is_ok()).then(|| Spill { folder, max_bytes: disk.max_temp_directory_size() });
        Self { pool: Some((Arc::new(account), limit as u64)), spill }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.pool.is_some()
    }

    /// Whether jobs write rows for which there is no room.
    pub(crate) fn spills(&self) -> bool {
        self.spill.is_some()
    }

    /// The options of the next job that keeps rows, where later ones may need this much memory. Its limit is what the
    /// pool would give now beside that, less what later consumers of a fair pool will take, so that the job begins to
    /// write before the pool refuses.
    pub(crate) fn job_options(&self, later_bytes: u64) -> JobOptions {
        let Some((account, limit)) = &self.pool else { return JobOptions::default() };
        let room = account.room(*limit).saturating_sub(later_bytes);
        JobOptions {
            memory_limit: if self.spills() { (room / 4 * 3).max(LEAST_BYTES) } else { 0 },
            account: Some(Arc::clone(account) as Arc<dyn MemoryAccount>),
            spill: self.spill.clone(),
            ..JobOptions::default()
        }
    }
}
