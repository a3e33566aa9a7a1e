// SPDX-License-Identifier: Apache-2.0
//! `DataFusion`'s own sqllogictest files, each run twice: without Quern, and with it and no falling back. The answers
//! to all statements are compared with each other and with the file.
//!
//! The current folder is that of the files: it has `test_files` and `data`.

mod compare;
mod engine;
mod files;
mod order;
mod report;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use datafusion_sqllogictest::{DFColumnType, df_value_validator, setup_scratch_dir, value_normalizer};
use futures::FutureExt;
use sqllogictest::{Record, Runner, parse_file, strict_column_validator};

use crate::compare::{Verdict, compare};
use crate::engine::{Answer, Engine, Log, Setting, session};
use crate::report::Report;

const USAGE: &str = "usage: quern-sqllogictest [--only PART]... [--list] [--partitions N] [--batch-rows N]";

/// A statement that takes longer has failed.
const MOST_SECONDS: u64 = 300;

#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    list: bool,
    setting: Setting,
}

fn options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} without a value; {USAGE}"));
        let number = |text: String| match text.parse::<usize>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("bad number: {text}; {USAGE}")),
        };
        match argument.as_str() {
            "--only" => options.only.push(value()?),
            "--list" => options.list = true,
            "--partitions" => options.setting.partitions = number(value()?)?,
            "--batch-rows" => options.setting.batch_rows = number(value()?)?,
            _ => return Err(format!("unknown argument: {argument}; {USAGE}")),
        }
    }
    Ok(options)
}

/// What one session gives for a record.
struct Given {
    answers: Vec<Answer>,
    /// What the file says otherwise.
    failure: Option<String>,
}

/// Why a file cannot be run.
struct Skipped(String);

/// Runs a file from its first to its last record.
async fn run(
    path: &Path,
    file: &Path,
    setting: Setting,
    with_quern: bool,
) -> Result<Result<Vec<Given>, Skipped>, String> {
    setup_scratch_dir(file).map_err(|error| error.to_string())?;
    // The crate leaves files out, and panics where it registers data that is not there.
    let context = match AssertUnwindSafe(session(file, setting, with_quern)).catch_unwind().await {
        Ok(Some(context)) => context,
        Ok(None) => return Ok(Err(Skipped("its features are not built".to_owned()))),
        Err(panic) => return Ok(Err(Skipped(format!("no session: {}", panic_text(panic.as_ref()))))),
    };
    let log = Log::default();
    let mut runner = Runner::new(|| async { Ok(Engine::new(context.clone(), file, Arc::clone(&log))) });
    runner.add_label("Datafusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(value_normalizer);
    runner.with_validator(df_value_validator);
    let mut all = vec![];
    for record in records(path)? {
        let running = AssertUnwindSafe(runner.run_async(record)).catch_unwind();
        let failure = match tokio::time::timeout(Duration::from_secs(MOST_SECONDS), running).await {
            Ok(Ok(Ok(_))) => None,
            Ok(Ok(Err(error))) => Some(error.to_string()),
            Ok(Err(panic)) => Some(format!("panic: {}", panic_text(panic.as_ref()))),
            Err(_) => Some(format!("no end within {MOST_SECONDS} s")),
        };
        let answers = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
        all.push(Given { answers, failure });
    }
    Ok(Ok(all))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text")
}

fn records(path: &Path) -> Result<Vec<Record<DFColumnType>>, String> {
    let records = parse_file(path).map_err(|error| error.to_string())?;
    Ok(records.into_iter().take_while(|record| !matches!(record, Record::Halt { .. })).collect())
}

/// The place of a record that runs something, and its text.
fn place(record: &Record<DFColumnType>) -> Option<(String, &str)> {
    let (Record::Statement { loc, sql, .. } | Record::Query { loc, sql, .. } | Record::Let { loc, sql, .. }) = record
    else {
        return None;
    };
    let file = loc.file().rsplit_once("test_files/").map_or(loc.file(), |(_, file)| file);
    Some((format!("{file}:{}", loc.line()), sql))
}

async fn compare_file(path: &Path, setting: Setting, report: &mut Report) -> Result<(), String> {
    let file = files::relative(path);
    let without = match run(path, file, setting, false).await? {
        Ok(given) => given,
        Err(Skipped(why)) => {
            report.skip(file, &why);
            return Ok(());
        }
    };
    let with = run(path, file, setting, true).await?.map_err(|Skipped(why)| format!("with Quern: {why}"))?;
    report.files += 1;
    for ((record, without), with) in records(path)?.iter().zip(&without).zip(&with) {
        let Some((place, sql)) = place(record) else { continue };
        if without.answers.is_empty() && with.answers.is_empty() && without.failure.is_none() {
            continue; // it is for other engines
        }
        let is_query = matches!(record, Record::Query { .. });
        report.count(is_query, &with.answers);
        let mut verdicts: Vec<_> =
            without.answers.iter().zip(&with.answers).map(|(without, with)| compare(without, with)).collect();
        if without.answers.len() != with.answers.len() {
            let failure = with.failure.as_deref().or(without.failure.as_deref()).unwrap_or("no failure");
            let (given, expected) = (with.answers.len(), without.answers.len());
            verdicts.push(Verdict::Different(format!("{given} answers, and {expected} without Quern: {failure}")));
        }
        let is_explain = with.answers.iter().any(|answer| answer.is_explain);
        let all_same = verdicts.iter().all(|verdict| *verdict == Verdict::Same);
        match (&without.failure, &with.failure) {
            (None, Some(failure)) if all_same && !is_explain => {
                verdicts.push(Verdict::Different(format!("the file says otherwise: {failure}")));
            }
            (Some(_), _) if !is_explain => report.unlike_file(file),
            _ => {}
        }
        report.judge(&place, sql, &verdicts);
    }
    Ok(())
}

async fn run_all(options: &Options) -> Result<bool, String> {
    let files = files::list(&options.only)?;
    if options.list {
        for path in files {
            println!("{}", files::relative(&path).display());
        }
        return Ok(true);
    }
    let mut report = Report::new()?;
    for path in &files {
        let missing = files::missing_data(path)?;
        if !missing.is_empty() {
            report.lacks(files::relative(path), missing);
        }
        compare_file(path, options.setting, &mut report).await?;
    }
    report.print();
    Ok(report.is_good())
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match options() {
        Ok(options) => run_all(&options).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sqllogictest: error: {error}");
            ExitCode::from(2)
        }
    }
}
