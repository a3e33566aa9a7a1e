// SPDX-License-Identifier: Apache-2.0
//! A cluster of processes on this machine: a scheduler and executors, on free ports, in a temporary folder.

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How a cluster is made.
pub struct ClusterOptions {
    /// Where the programs are.
    pub programs: PathBuf,
    pub executors: usize,
    pub vcores: usize,
    /// How tasks come to executors: `push-staged`, the default, or `pull-staged`.
    pub policy: &'static str,
    /// The memory pool of an executor, as `--memory-pool-size` takes it.
    pub memory: Option<&'static str>,
}

impl ClusterOptions {
    /// A dead executor is found out about in seconds. One that pulls tasks, and is busy, is heard of every 5 seconds.
    fn executor_timeout_seconds(&self) -> &'static str {
        if self.policy == "push-staged" { "5" } else { "12" }
    }
}

/// Processes are killed, and the folder is removed, when it is dropped. The variable `QUERN_BALLISTA_SCHEDULER` names
/// another scheduler, the stock one for instance.
pub struct Cluster {
    folder: PathBuf,
    port: u16,
    scheduler: Child,
    executors: Vec<Child>,
}

static CLUSTERS: AtomicUsize = AtomicUsize::new(0);

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

impl Cluster {
    pub fn start(options: &ClusterOptions) -> io::Result<Self> {
        let number = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("quern-ballista-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        fs::create_dir_all(folder.join("tmp"))?;
        let port = free_port()?;
        let scheduler = std::env::var_os("QUERN_BALLISTA_SCHEDULER").map(PathBuf::from);
        let scheduler = scheduler.unwrap_or_else(|| options.programs.join("quern-ballista-scheduler"));
        let mut cluster = Self {
            scheduler: Command::new(scheduler)
                .args(["--bind-host", "127.0.0.1", "--external-host", "127.0.0.1", "--bind-port", &port.to_string()])
                .args(["--scheduler-policy", options.policy])
                .args(["--executor-timeout-seconds", options.executor_timeout_seconds()])
                .args(["--expire-dead-executor-interval-seconds", "1"])
                .stdout(File::create(folder.join("scheduler.log"))?)
                .stderr(Stdio::inherit())
                .spawn()?,
            folder,
            port,
            executors: vec![],
        };
        cluster.wait_until("a scheduler", |_| Ok(TcpStream::connect(("127.0.0.1", port)).is_ok()))?;
        for number in 0..options.executors {
            let executor = cluster.start_executor(options, number)?;
            cluster.executors.push(executor);
        }
        cluster.wait_until("executors", |cluster| {
            let begun =
                |number: usize| fs::read_to_string(cluster.log_file(number)).map(|log| log.contains("Starting poll"));
            if options.policy == "push-staged" {
                let log = fs::read_to_string(cluster.folder.join("scheduler.log"))?;
                return Ok(log.matches("Received register executor request").count() >= options.executors);
            }
            // What the scheduler says of executors that pull tasks is not in its log.
            Ok((0..options.executors)
                .map(begun)
                .collect::<io::Result<Vec<_>>>()?
                .into_iter()
                .all(|has_begun| has_begun))
        })?;
        Ok(cluster)
    }

    fn start_executor(&self, options: &ClusterOptions, number: usize) -> io::Result<Child> {
        let work = self.work_folder(number);
        fs::create_dir_all(&work)?;
        let mut command = Command::new(options.programs.join("quern-ballista-executor"));
        command
            .args(["--bind-host", "127.0.0.1", "--external-host", "127.0.0.1"])
            .args(["--scheduler-host", "127.0.0.1", "--scheduler-port", &self.port.to_string()])
            .args(["--bind-port", &free_port()?.to_string(), "--bind-grpc-port", &free_port()?.to_string()])
            .args(["--bind-health-port", &free_port()?.to_string(), "--task-scheduling-policy", options.policy])
            .args(["--executor-heartbeat-interval-seconds", "1", "--vcores", &options.vcores.to_string()])
            .arg("--work-dir")
            .arg(&work)
            .env("TMPDIR", self.temporary_folder())
            .stdout(File::create(self.log_file(number))?)
            .stderr(Stdio::inherit());
        if let Some(memory) = options.memory {
            command.args(["--memory-pool-size", memory]);
        }
        command.spawn()
    }

    fn wait_until(&mut self, what: &str, is_there: impl Fn(&Self) -> io::Result<bool>) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(20);
        while !is_there(self)? {
            if let Some(status) = self.scheduler.try_wait()? {
                return Err(io::Error::other(format!("the scheduler ended: {status}")));
            }
            if Instant::now() > end {
                return Err(io::Error::other(format!("no {what} after 20 seconds")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What clients connect to.
    pub fn url(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }

    /// Where an executor keeps its files.
    pub fn work_folder(&self, executor: usize) -> PathBuf {
        self.folder.join(format!("executor-{executor}"))
    }

    /// The folder for temporary files of all executors.
    pub fn temporary_folder(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    fn log_file(&self, executor: usize) -> PathBuf {
        self.folder.join(format!("executor-{executor}.log"))
    }

    /// The lines of an executor's log that say what a task runs.
    pub fn tasks_of(&self, executor: usize) -> io::Result<Vec<String>> {
        let log = fs::read_to_string(self.log_file(executor))?;
        Ok(log
            .lines()
            .filter_map(|line| line.split_once("quern_ballista::engine: "))
            .map(|(_, task)| task.into())
            .collect())
    }

    /// Bytes in the files of all executors: what has gone through the shuffle, as long as nothing is cleaned up.
    #[allow(dead_code, reason = "tests include this module, too")]
    pub fn shuffled_bytes(&self) -> io::Result<u64> {
        fn bytes_below(folder: &Path) -> io::Result<u64> {
            let mut bytes = 0;
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                bytes +=
                    if entry.file_type()?.is_dir() { bytes_below(&entry.path())? } else { entry.metadata()?.len() };
            }
            Ok(bytes)
        }
        (0..self.executors.len()).map(|executor| bytes_below(&self.work_folder(executor))).sum()
    }

    /// Sends a signal to an executor: `KILL`, `STOP`, `CONT`.
    #[allow(dead_code, reason = "programs that include this module have no use for it")]
    pub fn signal(&mut self, executor: usize, signal: &str) -> io::Result<()> {
        let id = self.executors[executor].id().to_string();
        let status = Command::new("kill").args(["-s", signal, &id]).status()?;
        if signal == "KILL" {
            self.executors[executor].wait()?;
        }
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("kill -s {signal}: {status}"))) }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.executors.iter_mut().chain([&mut self.scheduler]) {
            let _ = process.kill(); // it may have ended
            let _ = process.wait();
        }
        if std::env::var_os("QUERN_KEEP_CLUSTER").is_none() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

#[allow(dead_code, reason = "tests know the folder from cargo")]
/// The folder of this workspace's programs, seen from an example or a test of it.
pub fn programs_beside(program: &Path) -> Option<PathBuf> {
    program.parent().and_then(Path::parent).map(Path::to_path_buf)
}
