// SPDX-License-Identifier: Apache-2.0
//! Makes fragments of physical plans.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::config::QuernConfig;
use crate::fragment::{
    Build, Chain, DynamicFilter, Fragment, JobSink, OutputColumn, SharedKernel, Sink, SinkColumns, Step,
};
use crate::fused::FusedMap;
use crate::join_kind::JoinKind;
use crate::reduce::reduce;
use crate::residual::{Residual, residual};
use crate::types::{self, ColumnType};

/// A fragment, and the plans that it reads from.
pub(crate) struct Planned {
    pub(crate) fragment: Fragment,
    pub(crate) children: Vec<Arc<dyn ExecutionPlan>>,
}

/// Makes one fragment. Every function that answers `None` has changed nothing that counts: the planner is then dropped,
/// or goes back to a [`Mark`].
struct Planner<'a> {
    config: &'a QuernConfig,
    /// Whether each source is a breaker, where a fragment is planned again over plans that do not show it.
    breakers: Option<&'a [bool]>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    builds: Vec<Build>,
}

struct Mark {
    children: usize,
    builds: usize,
}

/// The fragment whose result is that of a plan; none where the plan stays `DataFusion`'s.
pub(crate) fn plan_fragment(plan: &Arc<dyn ExecutionPlan>, config: &QuernConfig) -> Option<Planned> {
    plan_with_breakers(plan, config, None)
}

/// The same, for a plan whose sources may be of other types than when it was planned first.
pub(crate) fn plan_with_breakers(
    plan: &Arc<dyn ExecutionPlan>,
    config: &QuernConfig,
    breakers: Option<&[bool]>,
) -> Option<Planned> {
    // Groups of sorted rows, and rows that probe in order, keep an order on which a parent may rely.
    if plan.output_ordering().is_some() && !plan.is::<SortExec>() {
        return None;
    }
    let mut planner = Planner { config, breakers, children: vec![], builds: vec![] };
    let (chain, sink) = if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        planner.aggregation(aggregate)?
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        planner.sort(sort)?
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        planner.rows(join)?
    } else {
        return None;
    };
    let bounded = planner.children.iter().all(|child| !child.boundedness().is_unbounded());
    let mut fragment = Fragment { builds: planner.builds, chain, sink };
    reduce(&mut fragment);
    bounded.then_some(Planned { fragment, children: planner.children })
}

impl Planner<'_> {
    fn mark(&self) -> Mark {
        Mark { children: self.children.len(), builds: self.builds.len() }
    }

    fn back_to(&mut self, mark: &Mark) {
        self.children.truncate(mark.children);
        self.builds.truncate(mark.builds);
    }

    fn is_breaker(&self, source: usize) -> bool {
        match self.breakers {
            Some(breakers) => breakers.get(source) == Some(&true),
            None => is_breaker(&self.children[source]),
        }
    }

    // ---- chains ----

    /// The rows of a plan: those of a source, if nothing else. None where columns have types that kernels do not have.
    fn chain(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        let mark = self.mark();
        if let Some(chain) = self.steps(plan) {
            return Some(chain);
        }
        self.back_to(&mark);
        // The one row of a placeholder has columns of nulls, whatever its schema says.
        if plan.is::<PlaceholderRowExec>() && !plan.schema().fields().is_empty() {
            return None;
        }
        let chain = Chain::of_source(self.children.len(), &plan.schema())?;
        self.children.push(Arc::clone(plan));
        Some(chain)
    }

    fn steps(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let mut chain = self.chain(filter.input())?;
            if filter.fetch().is_some() {
                return None;
            }
            chain.filter(filter.predicate())?;
            if let Some(projection) = filter.projection() {
                chain.project(projection);
            }
            return Some(chain);
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let mut chain = self.chain(projection.input())?;
            let expressions: Vec<_> = projection.expr().iter().map(|item| Arc::clone(&item.expr)).collect();
            chain.columns = chain.compute(&expressions)?;
            return Some(chain);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return if join.fetch().is_none() { self.join(join, false) } else { None };
        }
        if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>() {
            return if coalesce.fetch().is_none() { self.chain(coalesce.input()) } else { None };
        }
        self.repartitioned(plan.downcast_ref::<RepartitionExec>()?)
    }

    /// Rows that `DataFusion` divides by their keys need not be divided: all threads share one table. Where that was to
    /// make more of the partitions, it is done without keys.
    fn repartitioned(&mut self, repartition: &RepartitionExec) -> Option<Chain> {
        let Partitioning::Hash(_, partitions) = repartition.partitioning() else { return None };
        let input = repartition.input();
        if input.output_partitioning().partition_count() >= *partitions {
            return self.chain(input);
        }
        let divided = RepartitionExec::try_new(Arc::clone(input), Partitioning::RoundRobinBatch(*partitions)).ok()?;
        let chain = Chain::of_source(self.children.len(), &input.schema())?;
        self.children.push(Arc::new(divided));
        Some(chain)
    }

    // ---- joins ----

    /// The rows of a join. Where they are the fragment's, its filter has to be one that kernels test with the keys.
    fn join(&mut self, join: &HashJoinExec, is_last: bool) -> Option<Chain> {
        let kind = JoinKind::of(join)?;
        if !self.config.joins
            || join.on().is_empty()
            || (kind.build_side() == JoinSide::Right && self.breakers.is_none() && has_large_right(join))
        {
            return None;
        }
        let (left, right) = (self.chain(join.left())?, self.chain(join.right())?);
        let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
        // A semi join builds the side whose rows come out, since DataFusion thinks that it is the smaller one. Groups
        // are fewer than their rows, and only their keys would be kept.
        let exchanged = kind.exchanged().filter(|_| join.filter().is_none() && self.is_breaker(right.source));
        let (kind, build_side) = exchanged.map_or((kind, kind.build_side()), |kind| (kind, JoinSide::Right));
        let (mut build, mut probe, left, right) = match build_side {
            JoinSide::Right => (right, left, right_keys, left_keys),
            _ => (left, right, left_keys, right_keys),
        };
        let build_keys = build.compute(&left)?;
        // The mark is false for a null key, not null. That is what equal nulls give where the table has none.
        if kind.is_mark() && join.null_equality() == NullEquality::NullEqualsNothing {
            build.leave_out_nulls(&build_keys)?;
        }
        let probe_keys = probe.compute(&right)?;
        let keys = key_types(&build.types_of(&build_keys), &probe.types_of(&probe_keys))?;
        let behind = join.filter().filter(|_| kind == JoinKind::Inner && !is_last);
        let columns = JoinColumns::of(join, build_side, behind)?;
        let with_keys = if behind.is_some() { None } else { join.filter() };
        let residual = residual(with_keys, &mut build, &mut probe, build_side)?;

        let build_payload: Vec<_> = columns.build.iter().map(|&column| build.columns[column]).collect();
        let probe_payload: Vec<_> = columns.probe.iter().map(|&column| probe.columns[column]).collect();
        let (build_types, probe_types) = (build.types_of(&build_payload), probe.types_of(&probe_payload));
        let spec = join_spec(kind, join.null_equality(), &keys, &build_types, &probe_types, &residual)?;
        let with_residual = |payload: &[u32], side: fn(&Residual) -> u32| -> Vec<u32> {
            payload.iter().copied().chain(residual.iter().map(side)).collect()
        };
        let build_payload = with_residual(&build_payload, |part| part.build);
        let all_probe_payload = with_residual(&probe_payload, |part| part.probe);

        // The filter is for the right side, and no range has nulls.
        let publishes = build_side == JoinSide::Left && join.null_equality() == NullEquality::NullEqualsNothing;
        let produced = if publishes { join.dynamic_expressions_produced() } else { vec![] };
        let dynamic_filter = produced.into_iter().next().map(|filter| DynamicFilter {
            filter,
            keys: right.clone(),
            types: keys.clone(),
        });
        let number = self.builds.len();
        self.builds.push(Build {
            kernel: SharedKernel::compile(spec)?,
            columns: sink_columns(&keys, &build.types_of(&build_payload)),
            probe_columns: sink_columns(&keys, &probe.types_of(&all_probe_payload)),
            chain: build,
            keys: build_keys,
            payload: build_payload,
            kind,
            dynamic_filter,
        });

        let nullable = |types: Vec<ColumnType>, also: bool| {
            types.into_iter().map(move |column| ColumnType { nullable: column.nullable || also, ..column })
        };
        let mark = kind.is_mark().then(|| ColumnType::new(&DataType::Boolean, false));
        let types_behind: Vec<_> = nullable(probe_types, kind.nulls_probe())
            .chain(mark)
            .chain(nullable(build_types, kind.nulls_build()))
            .collect();
        probe.steps.push(Step::Probe {
            build: number,
            keys: probe_keys,
            payload: all_probe_payload,
            num_probe: probe_payload.len(),
            types_behind: types_behind.clone(),
        });
        probe.types = types_behind;
        if let Some(filter) = behind {
            probe.columns = filter
                .column_indices()
                .iter()
                .map(|index| columns.number(index.side, index.index))
                .collect::<Option<_>>()?;
            probe.filter(filter.expression())?;
        }
        probe.columns = columns.output;
        Some(probe)
    }

    /// A join whose rows go to the parent.
    fn rows(&mut self, join: &HashJoinExec) -> Option<(Chain, Sink)> {
        let chain = self.join(join, true)?;
        let ends = matches!(chain.steps.last(), Some(Step::Probe { .. }));
        ends.then_some((chain, Sink::Rows { fetch: join.fetch() }))
    }

    // ---- aggregations ----

    fn aggregation(&mut self, aggregate: &AggregateExec) -> Option<(Chain, Sink)> {
        if !self.config.aggregates || aggregate.limit_options().is_some() {
            return None;
        }
        match aggregate.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned | AggregateMode::Partial => {
                self.groups(aggregate, aggregate.mode() == &AggregateMode::Partial)
            }
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                let mark = self.mark();
                if let Some(partial) = partial_below(aggregate.input())
                    && let Some(whole) = self.groups(partial, false)
                {
                    return Some(whole);
                }
                self.back_to(&mark);
                self.merged_groups(aggregate)
            }
            AggregateMode::PartialReduce => None,
        }
    }

    /// Groups of rows: whole, or as states in the layout of `DataFusion`'s, which its own operators can merge.
    fn groups(&mut self, aggregate: &AggregateExec, as_states: bool) -> Option<(Chain, Sink)> {
        let groups = aggregate.group_expr();
        if !groups.is_single() || aggregate.limit_options().is_some() {
            return None;
        }
        let mut chain = self.chain(aggregate.input())?;
        let keys: Vec<_> = groups.expr().iter().map(|(expression, _)| Arc::clone(expression)).collect();
        let mut functions = vec![];
        let mut expressions = keys.clone();
        for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            let wanted = AggregateFunction::of(function, filter.as_ref())?;
            if as_states && wanted.distinct {
                return None;
            }
            expressions.extend(wanted.argument.iter().cloned());
            expressions.extend(wanted.filter.iter().cloned());
            functions.push(wanted);
        }
        let numbers = chain.compute(&expressions)?;
        let (keys, mut rest) = numbers.split_at(keys.len());
        let mut list = AggregateList::new(keys.len());
        for function in &functions {
            let (columns, others) = rest.split_at(function.num_columns());
            rest = others;
            let types = chain.types_of(columns);
            let filter = function.filter.is_some();
            let argument = function.argument.is_some().then(|| types[0].clone());
            let output = list.add(function, argument.as_ref(), filter, columns)?;
            if let (true, OutputColumn::Average { sum, count }) = (as_states, &output) {
                list.outputs.extend([OutputColumn::Same(*count), OutputColumn::Same(*sum)]);
            } else {
                list.outputs.push(output);
            }
        }
        let sink = group_sink(&mut chain, keys, list)?;
        Some((chain, sink))
    }

    /// Groups of states in `DataFusion`'s layout, such as come through a shuffle.
    fn merged_groups(&mut self, aggregate: &AggregateExec) -> Option<(Chain, Sink)> {
        let groups = aggregate.group_expr();
        if !groups.is_single() {
            return None;
        }
        let mut chain = self.chain(aggregate.input())?;
        let num_keys = groups.expr().len();
        let key_expressions: Vec<_> = groups.expr().iter().map(|(expression, _)| Arc::clone(expression)).collect();
        let keys = chain.compute(&key_expressions)?;
        let mut list = AggregateList::new(num_keys);
        let mut state = num_keys;
        for function in aggregate.aggr_expr() {
            // Filters have been applied where the states were made.
            let wanted = AggregateFunction::of(function, None)?;
            if wanted.distinct {
                return None;
            }
            let column = |at: usize| chain.columns.get(at).copied();
            let mut merge = |name: &'static str, at: usize| -> Option<usize> {
                let number = column(at)?;
                list.push(name, Some(&chain.types[number as usize]), false, &[number])
            };
            let output = match wanted.name {
                "count" => OutputColumn::Count(merge("sum", state)?),
                "avg" => {
                    let count = merge("sum", state)?;
                    OutputColumn::Average { sum: merge("sum", state + 1)?, count }
                }
                name => OutputColumn::Same(merge(name, state)?),
            };
            state += if wanted.name == "avg" { 2 } else { 1 };
            list.outputs.push(output);
        }
        if state != chain.columns.len() {
            return None;
        }
        let sink = group_sink(&mut chain, &keys, list)?;
        Some((chain, sink))
    }

    // ---- sorts ----

    fn sort(&mut self, sort: &SortExec) -> Option<(Chain, Sink)> {
        if !self.config.sorts || sort.expr().len() > 16 {
            return None;
        }
        let mut chain = self.chain(sort.input())?;
        // A scan may leave out what a limited sort above it no longer wants, by a filter that the sort updates.
        let probes = chain.steps.iter().any(|step| matches!(step, Step::Probe { .. }));
        let gains = self.is_breaker(chain.source) || (probes && (self.breakers.is_some() || !updates_a_scan(sort)));
        if sort.fetch().is_some() && !gains {
            return None;
        }
        let expressions: Vec<_> = sort.expr().iter().map(|part| Arc::clone(&part.expr)).collect();
        let keys = chain.compute(&expressions)?;
        let mut items = vec![];
        for (part, column) in sort.expr().iter().zip(chain.types_of(&keys)) {
            if !types::compares_alike(&column.data_type) {
                return None;
            }
            let mut item = column.item()?;
            if part.options.descending {
                item += ":desc";
            }
            if part.options.nulls_first && column.nullable {
                item += ":nulls_first";
            }
            items.push(item);
        }
        // Keys that are columns of the plan come out as they are; all other columns are payload.
        let mut from = vec![usize::MAX; chain.columns.len()];
        let mut num_out = 0;
        for (key, number) in keys.iter().enumerate() {
            let mut first = true;
            for (place, _) in chain.columns.iter().enumerate().filter(|(_, column)| *column == number) {
                if from[place] == usize::MAX {
                    from[place] = num_out;
                    if first {
                        items[key] += ":out";
                    }
                    first = false;
                }
            }
            num_out += usize::from(!first);
        }
        let mut payload = vec![];
        for (place, number) in chain.columns.iter().enumerate() {
            if from[place] == usize::MAX {
                from[place] = num_out + payload.len();
                payload.push(*number);
            }
        }
        let mut spec = vec![format!("sort keys={}", items.join(","))];
        if !payload.is_empty() {
            spec.push(format!("payload={}", item_list(&chain.types_of(&payload))?));
        }
        if let Some(fetch) = sort.fetch() {
            if fetch == 0 {
                return None;
            }
            spec.push(format!("limit={fetch}"));
        }
        let columns = sink_columns(&chain.types_of(&keys), &chain.types_of(&payload));
        let job = JobSink { kernel: SharedKernel::compile(spec.join(" "))?, keys, payload, columns };
        Some((chain, Sink::Sorted(job, from)))
    }
}

/// Whether a source has read all its rows before it gives the first one, so that no filter reaches a scan from above.
pub(crate) fn is_breaker(source: &Arc<dyn ExecutionPlan>) -> bool {
    if source.is::<AggregateExec>() || source.is::<SortExec>() {
        return true;
    }
    let children = source.children();
    source.is::<ProjectionExec>() && children.iter().all(|child| is_breaker(child))
}

/// Whether a plan below a sort has the filter that the sort updates.
fn updates_a_scan(sort: &SortExec) -> bool {
    let produced = sort.dynamic_expressions_produced();
    let filters: Vec<_> = produced.iter().filter_map(|filter| filter.expression_id()).collect();
    !filters.is_empty() && mentions(sort.input(), &filters)
}

fn mentions(plan: &Arc<dyn ExecutionPlan>, filters: &[u64]) -> bool {
    let mut found = false;
    let visited = plan.apply_expressions(&mut |root| {
        let is_one = |part: &Arc<dyn PhysicalExpr>| part.expression_id().is_some_and(|id| filters.contains(&id));
        found |= root.exists(|part| Ok(is_one(part)))?;
        Ok(TreeNodeRecursion::Continue)
    });
    found || visited.is_err() || plan.children().into_iter().any(|child| mentions(child, filters))
}

/// The partial aggregation whose states a final one merges, where nothing but their distribution is between them.
fn partial_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return (aggregate.mode() == &AggregateMode::Partial).then_some(aggregate);
    }
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return partial_below(repartition.input());
    }
    let coalesce = plan.downcast_ref::<CoalescePartitionsExec>()?;
    if coalesce.fetch().is_none() { partial_below(coalesce.input()) } else { None }
}

// ---- joins ----

/// Which columns of both sides come out of a join, by their numbers in the side's plan, and where the plan's are.
struct JoinColumns {
    build_side: JoinSide,
    build: Vec<usize>,
    probe: Vec<usize>,
    /// The plan's columns as numbers behind the probe: probe columns, then the mark or build columns.
    output: Vec<u32>,
}

impl JoinColumns {
    /// With the columns of a filter behind the join.
    fn of(join: &HashJoinExec, build_side: JoinSide, filter: Option<&JoinFilter>) -> Option<Self> {
        let num_left = join.left().schema().fields().len();
        let num_right = join.right().schema().fields().len();
        // The columns in the order of a join without a projection.
        let mut all: Vec<(JoinSide, usize)> = vec![];
        if !matches!(join.join_type(), JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark) {
            all.extend((0..num_left).map(|column| (JoinSide::Left, column)));
        }
        if !matches!(join.join_type(), JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark) {
            all.extend((0..num_right).map(|column| (JoinSide::Right, column)));
        }
        if matches!(join.join_type(), JoinType::LeftMark | JoinType::RightMark) {
            all.push((JoinSide::None, 0));
        }
        let output: Vec<_> = match &join.projection {
            Some(projection) => projection.iter().map(|&column| all.get(column).copied()).collect::<Option<_>>()?,
            None => all,
        };
        let mut columns = Self { build_side, build: vec![], probe: vec![], output: vec![] };
        let filtered = filter.into_iter().flat_map(JoinFilter::column_indices).map(|index| (index.side, index.index));
        for (side, column) in output.iter().copied().chain(filtered).filter(|(side, _)| *side != JoinSide::None) {
            let list = if side == build_side { &mut columns.build } else { &mut columns.probe };
            if !list.contains(&column) {
                list.push(column);
            }
        }
        columns.output =
            output.iter().map(|&(side, column)| columns.number(side, column)).collect::<Option<Vec<_>>>()?;
        Some(columns)
    }

    fn number(&self, side: JoinSide, column: usize) -> Option<u32> {
        let position = |list: &[usize]| list.iter().position(|have| *have == column);
        let number = match side {
            JoinSide::None => self.probe.len(), // the mark, of a join without build columns
            side if side == self.build_side => self.probe.len() + position(&self.build)?,
            _ => position(&self.probe)?,
        };
        u32::try_from(number).ok()
    }
}

/// Whether the right side is large and much larger than the left one, as far as statistics tell. `DataFusion` builds
/// the left one, whatever the kind.
fn has_large_right(join: &HashJoinExec) -> bool {
    const LARGE: usize = 1 << 20;
    let rows = |side: &Arc<dyn ExecutionPlan>| {
        let statistics = StatisticsContext::new().compute(side.as_ref(), &StatisticsArgs::new()).ok()?;
        statistics.num_rows.get_value().copied()
    };
    rows(join.right()).is_some_and(|right| right >= LARGE && rows(join.left()).is_some_and(|left| right / 4 > left))
}

/// The types of keys, which may be null where they may be on one side.
fn key_types(build: &[ColumnType], probe: &[ColumnType]) -> Option<Vec<ColumnType>> {
    if build.len() > 16 {
        return None;
    }
    build
        .iter()
        .zip(probe)
        .map(|(build, probe)| {
            let alike = build.data_type == probe.data_type && types::compares_alike(&build.data_type);
            alike.then(|| ColumnType { nullable: build.nullable || probe.nullable, ..build.clone() })
        })
        .collect()
}

fn join_spec(
    kind: JoinKind,
    null_equality: NullEquality,
    keys: &[ColumnType],
    build: &[ColumnType],
    probe: &[ColumnType],
    residual: &[Residual],
) -> Option<String> {
    let mut items = vec![];
    for key in keys {
        let equal = key.nullable && (null_equality == NullEquality::NullEqualsNull || kind.is_mark());
        items.push(key.item()? + if equal { ":nullequal" } else { "" });
    }
    let mut spec = vec![format!("join.{} keys={}", kind.name(), items.join(","))];
    for (name, columns) in [("build", build), ("probe", probe)] {
        if !columns.is_empty() {
            spec.push(format!("{name}={}", item_list(columns)?));
        }
    }
    if !residual.is_empty() {
        let items: Vec<_> = residual.iter().map(|part| part.item.as_str()).collect();
        spec.push(format!("residual={}", items.join(",")));
    }
    Some(spec.join(" "))
}

fn item_list(columns: &[ColumnType]) -> Option<String> {
    Some(columns.iter().map(ColumnType::item).collect::<Option<Vec<_>>>()?.join(","))
}

fn sink_columns(keys: &[ColumnType], payload: &[ColumnType]) -> SinkColumns {
    let fields: Vec<_> = keys
        .iter()
        .chain(payload)
        .map(|column| Field::new("column", column.data_type.clone(), column.nullable))
        .collect();
    SinkColumns { schema: Arc::new(Schema::new(fields)) as SchemaRef, num_keys: keys.len() }
}

// ---- aggregations ----

/// An aggregate function of a plan that kernels have.
struct AggregateFunction {
    name: &'static str,
    distinct: bool,
    /// None: rows are counted.
    argument: Option<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl AggregateFunction {
    fn of(
        function: &datafusion::physical_expr::aggregate::AggregateFunctionExpr,
        filter: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Option<Self> {
        let arguments = function.expressions();
        let name = match function.fun().name() {
            "count" => "count",
            "sum" => "sum",
            "min" => "min",
            "max" => "max",
            "avg" => "avg",
            _ => return None,
        };
        let [argument] = arguments.as_slice() else { return None };
        let distinct = function.is_distinct() && matches!(name, "count" | "sum" | "avg");
        if (distinct && name != "count") || !function.order_bys().is_empty() {
            return None;
        }
        // Sums of decimals of many digits need 256 bits there, and those of narrow decimals are made there.
        if name == "avg" && !function.state_fields().is_ok_and(|state| is_average(&state, function.field().data_type()))
        {
            return None;
        }
        // Some expressions give a result for a literal that counts all rows; a null counts none.
        let constant = argument.downcast_ref::<Literal>();
        let counts_rows = name == "count" && !distinct && constant.is_some_and(|value| !value.value().is_null());
        Some(Self { name, distinct, argument: (!counts_rows).then(|| Arc::clone(argument)), filter: filter.cloned() })
    }

    fn num_columns(&self) -> usize {
        usize::from(self.argument.is_some()) + usize::from(self.filter.is_some())
    }
}

/// Whether a state of `DataFusion`'s, a count and a sum, and the average of them are such as `results` makes.
fn is_average(state: &[FieldRef], result: &DataType) -> bool {
    state.get(1).is_some_and(|sum| {
        matches!(
            (sum.data_type(), result),
            (DataType::Float64, DataType::Float64) | (DataType::Decimal128(..), DataType::Decimal128(..))
        )
    })
}

/// The functions of a spec, each once.
struct AggregateList {
    num_keys: usize,
    items: Vec<String>,
    columns: Vec<Vec<u32>>,
    outputs: Vec<OutputColumn>,
}

impl AggregateList {
    fn new(num_keys: usize) -> Self {
        Self { num_keys, items: vec![], columns: vec![], outputs: (0..num_keys).map(OutputColumn::Same).collect() }
    }

    fn add(
        &mut self,
        function: &AggregateFunction,
        argument: Option<&ColumnType>,
        filter: bool,
        columns: &[u32],
    ) -> Option<OutputColumn> {
        let Some(argument) = argument else {
            return Some(OutputColumn::Same(self.push("count_star", None, filter, columns)?));
        };
        Some(match function.name {
            "count" if function.distinct => {
                OutputColumn::Same(self.push("count_distinct", Some(argument), filter, columns)?)
            }
            "count" if !argument.nullable => {
                OutputColumn::Same(self.push("count_star", None, filter, &columns[1..])?)
            }
            "avg" => {
                let count = if argument.nullable {
                    self.push("count", Some(argument), filter, columns)?
                } else {
                    self.push("count_star", None, filter, &columns[1..])?
                };
                OutputColumn::Average { sum: self.push("sum", Some(argument), filter, columns)?, count }
            }
            name => OutputColumn::Same(self.push(name, Some(argument), filter, columns)?),
        })
    }

    /// Adds a function, and answers the number of its result column.
    fn push(&mut self, name: &str, argument: Option<&ColumnType>, filter: bool, columns: &[u32]) -> Option<usize> {
        if let Some(argument) = argument {
            let data_type = &argument.data_type;
            let accepted = match name {
                "sum" => {
                    types::is_integer(data_type)
                        || types::is_float(data_type)
                        || matches!(data_type, DataType::Decimal128(..))
                }
                "count" => true,
                // Bools, whose minimum DataFusion does not have, stay there.
                _ => types::compares_alike(data_type) && *data_type != DataType::Boolean,
            };
            if !accepted {
                return None;
            }
        }
        let argument =
            argument.map(ColumnType::item).map_or(Some(String::new()), |item| Some(format!("({})", item?)))?;
        let item = format!("{name}{argument}{}", if filter { ":filter" } else { "" });
        let same = self.items.iter().zip(&self.columns).position(|(have, of)| *have == item && of == columns);
        let place = same.unwrap_or_else(|| {
            self.items.push(item);
            self.columns.push(columns.to_vec());
            self.items.len() - 1
        });
        Some(self.num_keys + place)
    }
}

fn group_sink(chain: &mut Chain, keys: &[u32], list: AggregateList) -> Option<Sink> {
    let key_types = chain.types_of(keys);
    if keys.len() > 16 || !key_types.iter().all(|key| types::compares_alike(&key.data_type)) {
        return None;
    }
    let head =
        if keys.is_empty() { "aggregate".to_owned() } else { format!("aggregate keys={}", item_list(&key_types)?) };
    let sink = |spec: String, payload: Vec<u32>, chain: &Chain| {
        let columns = sink_columns(&key_types, &chain.types_of(&payload));
        Some(JobSink { kernel: SharedKernel::compile(spec)?, keys: keys.to_vec(), payload, columns })
    };
    // A map whose results the functions alone read becomes a part of their kernel.
    if let Some(fused) = FusedMap::of(chain, keys, &list.items, &list.columns) {
        let spec = format!("{head} in={} aggs={}", fused.items.join(","), fused.functions.join(","));
        if let Some(job) = sink(spec, fused.columns, chain) {
            chain.drop_map();
            return Some(Sink::Groups(job, list.outputs));
        }
    }
    let functions = if list.items.is_empty() { String::new() } else { format!(" aggs={}", list.items.join(",")) };
    Some(Sink::Groups(sink(head + &functions, list.columns.concat(), chain)?, list.outputs))
}
