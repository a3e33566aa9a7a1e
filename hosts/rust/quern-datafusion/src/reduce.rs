// SPDX-License-Identifier: Apache-2.0
//! Semi-join reductions: rows that a later join would take away anyway do not enter the tables of earlier ones.
//!
//! ```text
//! nations: one of 25 ──────────────────────────────> build 2
//! suppliers ──> reduce by 2: 400 of 10,000 ────────> build 0        without it 3.8 M line items enter build 1,
//! line items ─> probe 0 ───────────────────────────> build 1        and the probe of 2 takes away 24 of 25
//! orders ─> probe 1 ─> probe 2, whose key is a column of build 0's rows
//! ```
//!
//! The key of a probe is traced to where its column first is: through joins that only hand the column on, and into
//! their tables. (Bernstein and Chiu, "Using Semi-Joins to Solve Relational Queries", JACM 1981. `DataFusion` does the
//! like for scans of a probe side, by ranges.)

use crate::fragment::{Chain, Fragment, Step};
use crate::join_kind::JoinKind;

/// In front of which step of which chain: of a build, or, without a number, of the fragment's last one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    build: Option<usize>,
    step: usize,
}

/// Adds the reductions that may take rows away.
pub(crate) fn reduce(fragment: &mut Fragment) {
    // The last probes first: a table is then selective by what reduces it.
    for table in (0..fragment.builds.len()).rev() {
        if let Some(probe) = probe_of(fragment, table) {
            reduce_by(fragment, table, probe);
        }
    }
}

/// Where a table is probed, which one chain does.
fn probe_of(fragment: &Fragment, table: usize) -> Option<Place> {
    let of_chain = |build: Option<usize>| {
        let mut steps = chain_of(fragment, build).steps.iter();
        let step = steps.position(|step| matches!(step, Step::Probe { build, .. } if *build == table))?;
        Some(Place { build, step })
    };
    (0..fragment.builds.len()).map(Some).chain([None]).find_map(of_chain)
}

fn chain_of(fragment: &Fragment, build: Option<usize>) -> &Chain {
    build.map_or(&fragment.chain, |number| &fragment.builds[number].chain)
}

/// Adds the reduction by a table, where the keys that probe it come from in front of another join.
fn reduce_by(fragment: &mut Fragment, table: usize, probe: Place) {
    let Step::Probe { keys, .. } = &chain_of(fragment, probe.build).steps[probe.step] else { return };
    if !fragment.builds[table].kind.drops_unmatched_probe() || !is_selective(fragment, &fragment.builds[table].chain) {
        return;
    }
    let mut crosses_join = false;
    let (mut place, mut columns) = (probe, keys.clone());
    while let Some((earlier, same_columns)) = before(fragment, place, &columns) {
        crosses_join |= is_probe(fragment, place.build, place.step - 1);
        (place, columns) = (earlier, same_columns);
    }
    let may_wait = |build: usize| build != table && !needs(fragment, table, build);
    if !crosses_join || !place.build.is_none_or(may_wait) {
        return;
    }
    // Filters that stand there cost less.
    while is_filter(fragment, place) {
        place.step += 1;
    }
    let chain = match place.build {
        Some(build) => &mut fragment.builds[build].chain,
        None => &mut fragment.chain,
    };
    chain.steps.insert(place.step, Step::Reduction { build: table, keys: columns });
}

/// Where columns are before the step in front of a place, and their numbers there. None where they are made there, or
/// where a row that is taken away before would change what other rows become.
fn before(fragment: &Fragment, place: Place, columns: &[u32]) -> Option<(Place, Vec<u32>)> {
    let step = place.step.checked_sub(1)?;
    let chain = chain_of(fragment, place.build);
    let in_front = Place { step, ..place };
    match &chain.steps[step] {
        Step::Kernel { map: None, .. } | Step::Reduction { .. } => Some((in_front, columns.to_vec())),
        Step::Kernel { map: Some(_), .. } => {
            let first_result = chain.num_columns_before(step);
            columns.iter().all(|column| *column < first_result).then(|| (in_front, columns.to_vec()))
        }
        Step::Probe { build, payload, num_probe, .. } => {
            let made = &fragment.builds[*build];
            let at = |column: &u32| *column as usize;
            if columns.iter().all(|column| at(column) < *num_probe) {
                let same = columns.iter().map(|column| payload[at(column)]).collect();
                return (!made.kind.has_unmatched()).then_some((in_front, same));
            }
            let first_build = num_probe + usize::from(made.kind.is_mark());
            let of_table = |column: &u32| made.payload.get(at(column).checked_sub(first_build)?).copied();
            let same = columns.iter().map(of_table).collect::<Option<Vec<_>>>()?;
            let end = Place { build: Some(*build), step: made.chain.steps.len() };
            made.kind.drops_unmatched_probe().then_some((end, same))
        }
    }
}

fn is_probe(fragment: &Fragment, build: Option<usize>, step: usize) -> bool {
    matches!(chain_of(fragment, build).steps[step], Step::Probe { .. })
}

fn is_filter(fragment: &Fragment, place: Place) -> bool {
    matches!(chain_of(fragment, place.build).steps.get(place.step), Some(Step::Kernel { map: None, .. }))
}

/// Whether a chain's rows may be some of those that there are, as far as its steps tell.
fn is_selective(fragment: &Fragment, chain: &Chain) -> bool {
    chain.steps.iter().any(|step| match step {
        Step::Kernel { map, .. } => map.is_none(),
        Step::Reduction { .. } => true,
        Step::Probe { build, .. } => {
            let made = &fragment.builds[*build];
            match made.kind {
                JoinKind::RightSemi | JoinKind::RightAnti | JoinKind::NullAwareAnti => true,
                kind => kind.drops_unmatched_probe() && is_selective(fragment, &made.chain),
            }
        }
    })
}

/// Whether a table is made of rows that probe another one, or are reduced by it.
fn needs(fragment: &Fragment, table: usize, other: usize) -> bool {
    fragment.builds[table].chain.steps.iter().any(|step| match step {
        Step::Probe { build, .. } | Step::Reduction { build, .. } => *build == other || needs(fragment, *build, other),
        Step::Kernel { .. } => false,
    })
}
