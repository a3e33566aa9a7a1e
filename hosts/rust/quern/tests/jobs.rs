// SPDX-License-Identifier: Apache-2.0
//! Jobs of each kind over record batches.

#![expect(clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use quern::{Error, Job, JobOptions, Kernel, KernelOptions, MemoryAccount, Pipeline, Port, Rows, Spill};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn numbers(columns: &[&[i64]]) -> RecordBatch {
    let schema = Schema::new(
        (0..columns.len()).map(|i| Field::new(format!("c{i}"), DataType::Int64, false)).collect::<Vec<_>>(),
    );
    let arrays = columns.iter().map(|values| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).expect("columns of one length")
}

fn column(batch: &RecordBatch, number: usize) -> Vec<i64> {
    batch.column(number).as_primitive::<Int64Type>().values().to_vec()
}

/// An inner join whose table holds (1, 10), (2, 20), (2, 21).
fn table(options: &JobOptions) -> Result<Job, Error> {
    let job = Job::with(&Kernel::compile("join.inner keys=i64 build=i64 probe=i64")?, options)?;
    let rows = numbers(&[&[1, 2, 2], &[10, 20, 21]]);
    job.bind(Port::Build, &rows.schema(), &[Some(0)], &[Some(1)])?;
    job.bind(Port::Probe, &rows.schema(), &[Some(0)], &[Some(1)])?;
    let mut input = job.input(Port::Build)?;
    input.append(rows)?;
    input.finish()?;
    job.finalise()?;
    Ok(job)
}

#[test]
fn a_join() -> Outcome {
    let job = table(&JobOptions::default())?;
    let mut probe = job.output(Port::Probe)?;
    assert!(matches!(probe.next_rows()?, Rows::NeedsInput));
    probe.push(numbers(&[&[2, 3, 1], &[100, 101, 102]]))?;
    let Rows::Batch(batch) = probe.next_rows()? else { return Err("no rows".into()) };
    let mut pairs: Vec<_> = column(&batch, 0).into_iter().zip(column(&batch, 1)).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(100, 20), (100, 21), (102, 10)]);
    assert!(matches!(probe.next_rows()?, Rows::NeedsInput));
    let summary = job.summarise_key(0)?;
    assert_eq!((summary.num_rows, summary.range), (3, Some((1, 2))));
    assert_eq!(job.stats().num_rows, 3);
    Ok(())
}

#[test]
fn a_pipeline_ends_in_a_probe() -> Outcome {
    let job = table(&JobOptions::default())?;
    let small = Job::new(&Kernel::compile("filter i64 < 3")?)?;
    let twice = Job::new(&Kernel::compile("map in=i64 out=multiply($0,2:i64)")?)?;
    let mut pipeline = Pipeline::new("i64,i64");
    pipeline.through(&small, &[0], &[]).through(&twice, &[1], &[]);
    let mut output = pipeline.into_output(&job, &[0], &[2], 1000)?;
    let rows = output.push(numbers(&[&[2, 3, 1], &[100, 101, 102]]))?;
    let mut pairs: Vec<_> = rows.iter().flat_map(|batch| column(batch, 0).into_iter().zip(column(batch, 1))).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(200, 20), (200, 21), (204, 10)]);
    output.finish()?;

    // Without steps, from columns in another order.
    let mut output = Pipeline::new("i64,i64").into_output(&job, &[1], &[0], 1000)?;
    let rows = output.push(numbers(&[&[100], &[1]]))?;
    assert_eq!((rows.len(), column(&rows[0], 0), column(&rows[0], 1)), (1, vec![100], vec![10]));
    output.finish()?;
    Ok(())
}

#[test]
fn strings_of_a_sort_outlive_the_job() -> Outcome {
    let words = StringViewArray::from(vec![Some("a word of more than twelve bytes"), None, Some("a")]);
    let rows = RecordBatch::try_from_iter([("w", Arc::new(words) as ArrayRef)])?;
    let job = Job::new(&Kernel::compile("sort keys=utf8_view:nullable:desc:out")?)?;
    job.bind(Port::Rows, &rows.schema(), &[Some(0)], &[])?;
    let mut input = job.input(Port::Rows)?;
    input.append(rows)?;
    input.finish()?;
    job.finalise()?;
    let sorted = job.output(Port::Rows)?.collect::<Result<Vec<_>, _>>()?;
    drop(job);
    let column = sorted[0].column(0).as_string_view();
    assert_eq!(column.value(0), "a word of more than twelve bytes");
    assert_eq!(column.value(1), "a");
    assert!(column.is_null(2));
    Ok(())
}

#[test]
fn errors_name_the_value() -> Outcome {
    let error = Kernel::compile("join.inner keys=i65").err().ok_or("accepted")?;
    assert!(matches!(&error, Error::InvalidArgument(text) if text.contains("i65")), "{error}");
    let error = Kernel::compile("join.inner\0").err().ok_or("accepted")?;
    assert!(error.text().contains("NUL"), "{error}");
    let options = KernelOptions { params: "batch_size=0".to_owned(), ..KernelOptions::default() };
    let error = Kernel::with("join.inner keys=i64", &options).err().ok_or("accepted")?;
    assert!(error.text().contains("batch_size"), "{error}");
    let job = table(&JobOptions::default())?;
    let error = job.input(Port::Left).err().ok_or("accepted")?;
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    job.cancel();
    let error = job.output(Port::Probe).err().ok_or("accepted")?;
    assert!(matches!(error, Error::Cancelled(_)), "{error}");
    Ok(())
}

#[derive(Debug)]
struct Limit {
    used: AtomicU64,
    most: u64,
}

impl MemoryAccount for Limit {
    fn reserve(&self, bytes: u64) -> bool {
        let room = |used: u64| (used + bytes <= self.most).then_some(used + bytes);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }
}

fn grouped(options: &JobOptions) -> Result<(usize, u64), Error> {
    let job = Job::with(&Kernel::compile("aggregate keys=i64 aggs=count_star")?, options)?;
    let values: Vec<i64> = (0..1_000_000_i64).map(|value| value.wrapping_mul(0x1234_5678_9abc_def1)).collect();
    let rows = numbers(&[&values]);
    job.bind(Port::Rows, &rows.schema(), &[Some(0)], &[])?;
    let mut input = job.input(Port::Rows)?;
    for at in (0..rows.num_rows()).step_by(65_536) {
        input.append(rows.slice(at, 65_536.min(rows.num_rows() - at)))?;
    }
    input.finish()?;
    job.finalise()?;
    let mut groups = 0;
    for batch in job.output(Port::Rows)? {
        groups += batch?.num_rows();
    }
    Ok((groups, job.stats().spilled_rows))
}

#[test]
fn an_account_refuses_or_makes_a_job_spill() -> Outcome {
    let account = Arc::new(Limit { used: AtomicU64::new(0), most: 20 << 20 });
    let options = JobOptions { account: Some(account.clone()), ..JobOptions::default() };
    let error = grouped(&options).err().ok_or("accepted")?;
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
    let (groups, spilled) = grouped(&JobOptions { spill: Some(Spill::default()), ..options })?;
    assert_eq!(groups, 1_000_000);
    assert!(spilled > 0);
    assert_eq!(account.used.load(Ordering::Acquire), 0);
    Ok(())
}

#[test]
fn threads_share_a_job() -> Outcome {
    let job = Job::new(&Kernel::compile("aggregate keys=i64 aggs=sum(i64)")?)?;
    let rows = numbers(&[&[1, 2, 3, 1], &[5, 6, 7, 8]]);
    job.bind(Port::Rows, &rows.schema(), &[Some(0)], &[Some(1)])?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut input = job.input(Port::Rows)?;
                    input.append(rows.clone())?;
                    input.finish()
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    job.finalise()?;
    let mut sums = vec![];
    for batch in job.output(Port::Rows)? {
        let batch = batch?;
        sums.extend(column(&batch, 0).into_iter().zip(column(&batch, 1)));
    }
    sums.sort_unstable();
    assert_eq!(sums, [(1, 52), (2, 24), (3, 28)]);
    Ok(())
}

#[test]
fn batches_of_other_types_are_refused() -> Outcome {
    let job = Job::new(&Kernel::compile("sort keys=i64:out payload=utf8_view")?)?;
    let word: ArrayRef = Arc::new(StringViewArray::from(vec!["a word of more than twelve bytes"]));
    let number: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let batch = |columns: &[&ArrayRef]| {
        let names = columns.iter().map(|column| ("", Arc::clone(column), false));
        RecordBatch::try_from_iter_with_nullable(names)
    };
    let right = batch(&[&number, &word])?;
    let unbound = job.input(Port::Rows)?.append(right.clone());
    assert!(matches!(unbound, Err(Error::FailedPrecondition(_))), "{unbound:?}");
    job.bind(Port::Rows, &right.schema(), &[Some(0)], &[Some(1)])?;
    let mut input = job.input(Port::Rows)?;
    for wrong in [batch(&[&word, &number])?, batch(&[&number])?, batch(&[&number, &number])?] {
        let refused = input.append(wrong);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{refused:?}");
    }
    // Nothing of them was added.
    input.append(right)?;
    input.finish()?;
    job.finalise()?;
    assert_eq!(job.output(Port::Rows)?.map(|rows| rows.map(|rows| rows.num_rows())).sum::<Result<usize, _>>()?, 1);

    let mut pipeline = Pipeline::new("i64,utf8_view:nullable");
    let few = Job::new(&Kernel::compile("filter i64 < 3")?)?;
    let sort = Job::new(&Kernel::compile("sort keys=i64:out payload=utf8_view:nullable")?)?;
    let mut input = pipeline.through(&few, &[0], &[]).into_job(&sort, Port::Rows, &[0], &[1])?;
    assert!(matches!(input.append(batch(&[&word, &number])?), Err(Error::InvalidArgument(_))));
    Ok(())
}
