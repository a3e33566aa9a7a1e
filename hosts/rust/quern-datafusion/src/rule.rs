// SPDX-License-Identifier: Apache-2.0
//! The optimizer rule.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::config::SessionConfig;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::physical_expr::{Distribution, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec, can_interleave};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::config::QuernConfig;
use crate::exec::QuernExec;
use crate::filtered_join::FilteredJoin;
use crate::foreign::read_by_session;
use crate::planner::{Planned, plan_fragment, plan_with_breakers};

/// Replaces fragments of physical plans by [`QuernExec`]. It comes last, behind the rules that decide about
/// distribution and order.
#[derive(Debug, Default)]
pub struct QuernRule;

impl PhysicalOptimizerRule for QuernRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let settings = config.extensions.get::<QuernConfig>().cloned().unwrap_or_default();
        if !settings.enabled {
            return Ok(plan);
        }
        match replace_fragments(&plan, &settings, config) {
            Err(_) if settings.fall_back => Ok(plan),
            replaced => replaced,
        }
    }

    fn name(&self) -> &'static str {
        "quern"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with fragments replaced. Where a parent needs its rows by their keys, they are divided by them again; where
/// that cannot be done, nothing is replaced. Nor is it where a session has put an aggregate function of its own in the
/// place of one that kernels compute.
///
/// # Errors
///
/// Those of plans that do not take other children.
pub fn replace_fragments(
    plan: &Arc<dyn ExecutionPlan>,
    settings: &QuernConfig,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if has_other_functions(plan)? { Ok(Arc::clone(plan)) } else { replace_by_name(plan, settings, config) }
}

/// The same for a plan of another copy of `DataFusion` in this process, whose functions are known by their names alone.
/// The sources of fragments are read by tasks of its session.
///
/// # Errors
///
/// Those of plans that do not take other children.
pub fn replace_foreign_fragments(
    plan: &Arc<dyn ExecutionPlan>,
    settings: &QuernConfig,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    read_by_session(replace_by_name(plan, settings, config)?)
}

fn has_other_functions(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let own = all_default_aggregate_functions();
    plan.exists(|node| {
        let aggregates = node.downcast_ref::<AggregateExec>().map_or(&[][..], AggregateExec::aggr_expr);
        Ok(aggregates.iter().any(|aggregate| {
            let function = aggregate.fun();
            own.iter().any(|own| own.name() == function.name() && **own != *function)
        }))
    })
}

fn replace_by_name(
    plan: &Arc<dyn ExecutionPlan>,
    settings: &QuernConfig,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let settings = Settings { quern: settings, batch_rows: config.execution.batch_size.into() };
    let replaced = distributed(&rewritten(plan, &settings)?, config.execution.target_partitions)?;
    let Some(replaced) = replaced else { return Ok(Arc::clone(plan)) };
    match SanityCheckPlan::new().optimize(Arc::clone(&replaced), config) {
        Ok(_) => Ok(replaced),
        Err(_) => Ok(Arc::clone(plan)),
    }
}

struct Settings<'a> {
    quern: &'a QuernConfig,
    batch_rows: usize,
}

fn rewritten(plan: &Arc<dyn ExecutionPlan>, settings: &Settings<'_>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(sorted) = merged_sort(plan, settings)? {
        return Ok(sorted);
    }
    if let Some(replaced) = replacement(plan, settings)? {
        return Ok(replaced);
    }
    if let Some(filtered) = FilteredJoin::of(plan)?
        && let Some(replaced) = replacement(&filtered.join, settings)?
    {
        return Ok(limited(filtered.above(replaced, settings.batch_rows)?, plan));
    }
    let children = plan.children().into_iter().map(|child| rewritten(child, settings)).collect::<Result<Vec<_>>>()?;
    with_children(plan, children)
}

fn with_children(
    plan: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.children().into_iter().zip(&children).all(|(old, new)| Arc::ptr_eq(old, new)) {
        return Ok(Arc::clone(plan));
    }
    // Partitions are put together one by one only where all inputs are divided by the same keys.
    if plan.is::<InterleaveExec>() && !can_interleave(children.iter()) {
        return UnionExec::try_new(children);
    }
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// A fragment in place of a plan, over children that are rewritten, too.
fn replacement(plan: &Arc<dyn ExecutionPlan>, settings: &Settings<'_>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if is_sort_of_partitions(plan) {
        return Ok(None); // `merged_sort` has those whose parts are merged
    }
    let is_partial =
        plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| aggregate.mode() == &AggregateMode::Partial);
    let Some(planned) = plan_fragment(plan, settings.quern) else { return Ok(None) };
    // States of few rows each would be made again for every partition; without a join below nothing is won.
    if is_partial && planned.fragment.builds.is_empty() && planned.fragment.chain.steps.is_empty() {
        return Ok(None);
    }
    Ok(Some(limited(node(planned, Arc::clone(plan), settings)?, plan)))
}

/// The node of a fragment, over sources that are rewritten, too.
fn node(planned: Planned, original: Arc<dyn ExecutionPlan>, settings: &Settings<'_>) -> Result<Arc<dyn ExecutionPlan>> {
    let children = planned.children.iter().map(|child| rewritten(child, settings)).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(QuernExec::new(Arc::new(planned.fragment), original, planned.children, children)))
}

/// A limit of one partition is one of all rows, and stays that where a node has more partitions.
fn limited(node: Arc<dyn ExecutionPlan>, plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let partitions = |plan: &Arc<dyn ExecutionPlan>| plan.output_partitioning().partition_count();
    if node.fetch().is_none() || partitions(plan) > 1 || partitions(&node) == 1 {
        return node;
    }
    let fetch = node.fetch();
    Arc::new(CoalescePartitionsExec::new(node).with_fetch(fetch))
}

fn is_sort_of_partitions(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<SortExec>()
        .is_some_and(|sort| sort.preserve_partitioning() && sort.input().output_partitioning().partition_count() > 1)
}

/// One sort in place of a sort of each partition, for a parent that merges the partitions and does not mind which of
/// them has a row. All rows come out of the first one; the others are empty. None where the sort stays `DataFusion`'s.
///
/// # Errors
///
/// Those of plans that do not take other children.
pub fn replace_sort_of_partitions(
    plan: &Arc<dyn ExecutionPlan>,
    settings: &QuernConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !is_sort_of_partitions(plan) {
        return Ok(None);
    }
    let Some(planned) = plan_fragment(plan, settings) else { return Ok(None) };
    let settings = Settings { quern: settings, batch_rows: SessionConfig::new().batch_size() };
    Ok(Some(node(planned, Arc::clone(plan), &settings)?))
}

/// The node in place of a plan that a fragment has replaced before, over sources that are rewritten already. None where
/// the fragment cannot be made again: the plan itself is then right.
pub(crate) fn fragment_again(
    original: &Arc<dyn ExecutionPlan>,
    settings: &QuernConfig,
    breakers: &[bool],
) -> Option<QuernExec> {
    let merged = original.downcast_ref::<SortPreservingMergeExec>().and_then(whole_sort);
    let planned = plan_with_breakers(merged.as_ref().unwrap_or(original), settings, Some(breakers))?;
    if planned.children.len() != breakers.len() {
        return None;
    }
    let sources = planned.children.clone();
    Some(QuernExec::new(Arc::new(planned.fragment), Arc::clone(original), sources, planned.children))
}

/// The sort of all rows in place of one of each partition below a merge.
fn whole_sort(merge: &SortPreservingMergeExec) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = merge.input().downcast_ref::<SortExec>().filter(|sort| sort.fetch() == merge.fetch())?;
    Some(Arc::new(sort.clone().with_preserve_partitioning(false)))
}

/// Sorts of each partition that are merged above are one sort, whose order projections in between keep.
fn merged_sort(plan: &Arc<dyn ExecutionPlan>, settings: &Settings<'_>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
    let mut projections = vec![];
    let mut below = merge.input();
    while let Some(projection) = below.downcast_ref::<ProjectionExec>() {
        projections.push(Arc::clone(below));
        below = projection.input();
    }
    let Some(sort) = below.downcast_ref::<SortExec>() else { return Ok(None) };
    // Where the fragment cannot run, the sorts of the partitions and their merge do.
    let original = SortPreservingMergeExec::new(sort.expr().clone(), Arc::clone(below)).with_fetch(merge.fetch());
    let Some(planned) = whole_sort(&original).and_then(|whole| plan_fragment(&whole, settings.quern)) else {
        return Ok(None);
    };
    let mut sorted = node(planned, Arc::new(original), settings)?;
    for projection in projections.iter().rev() {
        sorted = with_children(projection, vec![sorted])?;
    }
    Ok(Some(sorted))
}

/// Divides rows by keys, or puts them together, for the parents that need it. None where a parent also needs an order.
fn distributed(plan: &Arc<dyn ExecutionPlan>, partitions: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut children = vec![];
    for child in plan.children() {
        let Some(child) = distributed(child, partitions)? else { return Ok(None) };
        children.push(child);
    }
    let requirements = plan.input_distribution_requirements();
    let satisfied = |number: usize, child: &Arc<dyn ExecutionPlan>| {
        requirements.child_distribution(number).is_none_or(|distribution| {
            let equivalences = child.equivalence_properties();
            child.output_partitioning().satisfaction(distribution, equivalences, false).is_satisfied()
        })
    };
    if children.iter().enumerate().all(|(number, child)| satisfied(number, child)) {
        return with_children(plan, children).map(Some);
    }
    let orders = plan.required_input_ordering();
    let mut arranged = vec![];
    for (number, child) in children.into_iter().enumerate() {
        let distribution = requirements.child_distribution(number);
        let has_order = orders.get(number).is_some_and(Option::is_some);
        if matches!(distribution, Some(Distribution::SinglePartition)) && !satisfied(number, &child) {
            if has_order {
                return Ok(None);
            }
            arranged.push(Arc::new(CoalescePartitionsExec::new(child)) as Arc<dyn ExecutionPlan>);
            continue;
        }
        let Some(keys) = distribution.and_then(keys_of) else {
            arranged.push(child);
            continue;
        };
        if has_order {
            return Ok(None);
        }
        let arrangement = RepartitionExec::try_new(child, Partitioning::Hash(keys.clone(), partitions))?;
        arranged.push(Arc::new(arrangement) as Arc<dyn ExecutionPlan>);
    }
    with_children(plan, arranged).map(Some)
}

/// The keys by which rows have to be divided.
#[allow(deprecated, reason = "plans of other crates may still ask for HashPartitioned")]
fn keys_of(distribution: &Distribution) -> Option<&Vec<Arc<dyn PhysicalExpr>>> {
    match distribution {
        Distribution::KeyPartitioned(keys) | Distribution::HashPartitioned(keys) => Some(keys),
        _ => None,
    }
}
