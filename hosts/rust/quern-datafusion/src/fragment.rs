// SPDX-License-Identifier: Apache-2.0
//! A fragment: what one [`QuernExec`](crate::QuernExec) runs. It is a description; nothing in it belongs to a run.
//!
//! ```text
//! source 0 ─> filter ─> map ─────────────────────────────> build of join 0          builds, in the order of their runs
//! source 1 ─> filter ─> probe of join 0 ─────────────────> build of join 1
//! source 2 ─> probe of join 1 ─> map ─> probe of join .. ─> aggregation, sort, or rows for the parent      the chain
//! ```
//!
//! Sources are children of the node, plans that `DataFusion` runs.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use quern::Kernel;

use crate::expression::{ScopeColumn, Translator};
use crate::join_kind::JoinKind;
use crate::types::{self, ColumnType};

/// Builds of joins, then the rows that probe them.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) builds: Vec<Build>,
    pub(crate) chain: Chain,
    pub(crate) sink: Sink,
}

/// A source and the steps that its rows pass.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The number of the source among the node's children.
    pub(crate) source: usize,
    pub(crate) source_types: Vec<ColumnType>,
    pub(crate) steps: Vec<Step>,
    /// The pipeline's columns behind the last step, by number.
    pub(crate) types: Vec<ColumnType>,
    /// The columns of the plan that the chain stands for, as numbers of the pipeline's.
    pub(crate) columns: Vec<u32>,
}

/// What rows pass.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A filter, or a map, which adds columns.
    Kernel { kernel: SharedKernel, keys: Vec<u32>, map: Option<MapTexts> },
    /// A probe of `Fragment::builds[build]`, which replaces the columns. The first `num_probe` of the payload come out,
    /// the others are the residual's.
    Probe { build: usize, keys: Vec<u32>, payload: Vec<u32>, num_probe: usize, types_behind: Vec<ColumnType> },
    /// Rows that `Fragment::builds[build]` cannot match are taken away, as a later probe would ([`crate::reduce`]).
    Reduction { build: usize, keys: Vec<u32> },
}

/// The lists `in` and `out` of a map.
#[derive(Debug, Clone)]
pub(crate) struct MapTexts {
    pub(crate) items: Vec<String>,
    pub(crate) results: Vec<String>,
}

/// The table of a join.
#[derive(Debug)]
pub(crate) struct Build {
    pub(crate) chain: Chain,
    pub(crate) kernel: SharedKernel,
    pub(crate) keys: Vec<u32>,
    pub(crate) payload: Vec<u32>,
    pub(crate) columns: SinkColumns,
    pub(crate) probe_columns: SinkColumns,
    pub(crate) kind: JoinKind,
    /// What the join tells scans of its probe side.
    pub(crate) dynamic_filter: Option<DynamicFilter>,
}

/// A filter of scans that is known when the table is there: the ranges of its keys.
#[derive(Debug, Clone)]
pub(crate) struct DynamicFilter {
    /// A `DynamicFilterPhysicalExpr`.
    pub(crate) filter: Arc<dyn PhysicalExpr>,
    /// The keys of the probe side.
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) types: Vec<ColumnType>,
}

/// The columns of a port, keys first, with which it is bound so that results get the units and scales of the columns.
#[derive(Debug, Clone)]
pub(crate) struct SinkColumns {
    pub(crate) schema: Arc<Schema>,
    pub(crate) num_keys: usize,
}

/// Where the rows of the chain end.
#[derive(Debug)]
pub(crate) enum Sink {
    /// An aggregation.
    Groups(JobSink, Vec<OutputColumn>),
    /// A sort, with the number of result columns in the order of the plan's.
    Sorted(JobSink, Vec<usize>),
    /// The parent: the last step is a probe, whose results come out as they are. It wants `fetch` rows of a partition.
    Rows { fetch: Option<usize> },
}

/// A job that takes rows.
#[derive(Debug)]
pub(crate) struct JobSink {
    pub(crate) kernel: SharedKernel,
    pub(crate) keys: Vec<u32>,
    pub(crate) payload: Vec<u32>,
    pub(crate) columns: SinkColumns,
}

/// A column of an aggregation's result, from columns of the job's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputColumn {
    /// As it is.
    Same(usize),
    /// As it is, with 0 for null: a sum of counts.
    Count(usize),
    /// A sum divided by a count.
    Average { sum: usize, count: usize },
}

/// A kernel and its spec.
#[derive(Clone)]
pub(crate) struct SharedKernel {
    pub(crate) spec: Arc<str>,
    pub(crate) kernel: Arc<Kernel>,
}

impl Fragment {
    /// How many operators of which kind it has, in words.
    pub(crate) fn operators(&self) -> String {
        let mut counts = [("filter", 0), ("map", 0), ("join", 0), ("reduction", 0)];
        for step in self.builds.iter().map(|build| &build.chain).chain([&self.chain]).flat_map(|chain| &chain.steps) {
            let kind = match step {
                Step::Kernel { kernel, .. } if kernel.spec.starts_with("filter") => 0,
                Step::Kernel { .. } => 1,
                Step::Probe { .. } => 2,
                Step::Reduction { .. } => 3,
            };
            counts[kind].1 += 1;
        }
        let sink = match &self.sink {
            Sink::Groups(..) => Some("aggregate".to_owned()),
            Sink::Sorted(..) => Some("sort".to_owned()),
            Sink::Rows { .. } => None,
        };
        let counted = counts.into_iter().filter(|(_, count)| *count > 0);
        let counted = counted.map(|(name, count)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }));
        counted.chain(sink).collect::<Vec<_>>().join(", ")
    }
}

impl SharedKernel {
    /// None for a spec that the library refuses.
    pub(crate) fn compile(spec: String) -> Option<Self> {
        let kernel = Kernel::compile(&spec).ok()?;
        Some(Self { spec: spec.into(), kernel: Arc::new(kernel) })
    }
}

impl fmt::Debug for SharedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)
    }
}

impl Chain {
    pub(crate) fn of_source(source: usize, schema: &Schema) -> Option<Self> {
        let types: Vec<_> =
            schema.fields().iter().map(|field| ColumnType::new(field.data_type(), field.is_nullable())).collect();
        let known = types.iter().all(|column_type| column_type.item().is_some());
        let columns = (0..u32::try_from(types.len()).ok()?).collect();
        known.then(|| Self { source, source_types: types.clone(), steps: vec![], types, columns })
    }

    /// The plan's columns, as expressions over the plan name them.
    pub(crate) fn scope(&self) -> Vec<ScopeColumn> {
        self.columns
            .iter()
            .map(|&number| ScopeColumn { number, column_type: self.types[number as usize].clone() })
            .collect()
    }

    /// Keeps columns of the plan, by their numbers in it.
    pub(crate) fn project(&mut self, columns: &[usize]) {
        self.columns = columns.iter().map(|&column| self.columns[column]).collect();
    }

    /// Adds a filter: of conditions that compare columns, then of those that a map has to compute, for the rows that
    /// are left. None, and nothing changes, where the predicate cannot be translated.
    pub(crate) fn filter(&mut self, predicate: &Arc<dyn PhysicalExpr>) -> Option<()> {
        let scope = self.scope();
        let (mut conditions, mut keys) = (vec![], vec![]);
        let mut computed = vec![];
        for part in split_conjunction(predicate) {
            let mut translator = Translator::new(&scope);
            if let Some(condition) = translator.condition(part) {
                conditions.push(condition);
                keys.extend_from_slice(translator.keys());
            } else {
                computed.push(Arc::clone(part));
            }
        }
        let mut chain = self.clone();
        chain.filter_by(&conditions, keys)?;
        let keys = chain.compute(&computed)?;
        let conditions = chain.types_of(&keys).iter().map(ColumnType::item).collect::<Option<Vec<_>>>()?;
        chain.filter_by(&conditions, keys)?;
        *self = chain;
        Some(())
    }

    /// Adds a filter of the rows in which none of some columns is null.
    pub(crate) fn leave_out_nulls(&mut self, columns: &[u32]) -> Option<()> {
        let may_be_null = |number: &u32| self.types[*number as usize].nullable;
        let columns: Vec<u32> = columns.iter().copied().filter(may_be_null).collect();
        let conditions = self.types_of(&columns).into_iter().map(|column| Some(column.item()? + " is not null"));
        let conditions = conditions.collect::<Option<Vec<_>>>()?;
        self.filter_by(&conditions, columns)
    }

    fn filter_by(&mut self, conditions: &[String], keys: Vec<u32>) -> Option<()> {
        if !conditions.is_empty() {
            let kernel = SharedKernel::compile(format!("filter {}", conditions.join(" and ")))?;
            self.steps.push(Step::Kernel { kernel, keys, map: None });
        }
        Some(())
    }

    /// The numbers of the pipeline's columns that hold the values of expressions, computed by a map where they are not
    /// columns. None, and nothing changes, where one cannot be translated.
    pub(crate) fn compute(&mut self, expressions: &[Arc<dyn PhysicalExpr>]) -> Option<Vec<u32>> {
        let scope = self.scope();
        let mut translator = Translator::new(&scope);
        let mut numbers = vec![];
        let mut results: Vec<String> = vec![];
        let mut added = vec![];
        let schema = Schema::new(
            scope
                .iter()
                .map(|column| {
                    arrow::datatypes::Field::new("", column.column_type.data_type.clone(), column.column_type.nullable)
                })
                .collect::<Vec<_>>(),
        );
        for expression in expressions {
            if let Some(column) = expression.downcast_ref::<datafusion::physical_expr::expressions::Column>() {
                numbers.push(*self.columns.get(column.index())?);
                continue;
            }
            let term = translator.value(expression)?;
            let place = results.iter().position(|text| *text == term.text).unwrap_or_else(|| {
                results.push(term.text.clone());
                results.len() - 1
            });
            if place == added.len() {
                let wanted = expression.data_type(&schema).ok()?;
                let data_type = types::relabelled(&term.data_type, &wanted)?;
                added.push(ColumnType { data_type, nullable: term.nullable });
            }
            numbers.push(u32::try_from(self.types.len() + place).ok()?);
        }
        if !results.is_empty() {
            let inputs = if translator.items().is_empty() {
                String::new()
            } else {
                format!("in={} ", translator.items().join(","))
            };
            let kernel = SharedKernel::compile(format!("map {inputs}out={}", results.join(",")))?;
            let map = Some(MapTexts { items: translator.items().to_vec(), results });
            self.steps.push(Step::Kernel { kernel, keys: translator.keys().to_vec(), map });
            self.types.extend(added);
        }
        Some(numbers)
    }

    /// Takes away the last step, a map, with its results.
    pub(crate) fn drop_map(&mut self) {
        if let Some(Step::Kernel { map: Some(map), .. }) = self.steps.pop() {
            self.types.truncate(self.types.len() - map.results.len());
        }
    }

    /// Whether the tables that its rows probe are there.
    pub(crate) fn can_run<T>(&self, builds: &[Option<T>]) -> bool {
        self.steps.iter().all(|step| match step {
            Step::Probe { build, .. } | Step::Reduction { build, .. } => {
                builds.get(*build).is_some_and(Option::is_some)
            }
            Step::Kernel { .. } => true,
        })
    }

    /// The column of the source that is a column in front of a step.
    pub(crate) fn source_column(&self, step: usize, column: u32) -> Option<usize> {
        let mut column = column as usize;
        for step in self.steps[..step].iter().rev() {
            if let Step::Probe { payload, num_probe, .. } = step {
                column = *payload[..*num_probe].get(column)? as usize;
            }
        }
        (column < self.source_types.len()).then_some(column)
    }

    /// How many columns there are in front of a step.
    pub(crate) fn num_columns_before(&self, step: usize) -> u32 {
        let mut num_columns = self.source_types.len();
        for step in &self.steps[..step] {
            match step {
                Step::Kernel { map: Some(map), .. } => num_columns += map.results.len(),
                Step::Kernel { .. } | Step::Reduction { .. } => {}
                Step::Probe { types_behind, .. } => num_columns = types_behind.len(),
            }
        }
        u32::try_from(num_columns).unwrap_or(u32::MAX)
    }

    /// The types of columns, by their numbers in the pipeline.
    pub(crate) fn types_of(&self, numbers: &[u32]) -> Vec<ColumnType> {
        numbers.iter().map(|&number| self.types[number as usize].clone()).collect()
    }

    fn fmt_steps(&self, fragment: &Fragment, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "child {}", self.source)?;
        for step in &self.steps {
            match step {
                Step::Kernel { kernel, .. } => write!(f, " -> {}", shortened(&kernel.spec))?,
                Step::Probe { build, .. } => {
                    write!(f, " -> probe {build}: {}", shortened(&fragment.builds[*build].kernel.spec))?;
                }
                Step::Reduction { build, .. } => write!(f, " -> reduce by {build}")?,
            }
        }
        Ok(())
    }
}

/// Specs in plans are cut, as the lists of an `in` may be long.
fn shortened(spec: &str) -> String {
    const MOST: usize = 120;
    if spec.chars().count() <= MOST { spec.to_owned() } else { spec.chars().take(MOST).chain("..".chars()).collect() }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, build) in self.builds.iter().enumerate() {
            write!(f, "build {number}: ")?;
            build.chain.fmt_steps(self, f)?;
            f.write_str("; ")?;
        }
        self.chain.fmt_steps(self, f)?;
        match &self.sink {
            Sink::Groups(job, _) | Sink::Sorted(job, _) => write!(f, " -> {}", shortened(&job.kernel.spec)),
            Sink::Rows { fetch: Some(fetch) } => write!(f, " -> first {fetch} rows"),
            Sink::Rows { fetch: None } => Ok(()),
        }
    }
}
