// SPDX-License-Identifier: Apache-2.0
//! Answers with Quern beside those without it.

use crate::engine::{Answer, Table};

/// How two answers compare.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same rows in the same order, or errors in both.
    Same,
    /// The same rows in an order that the query leaves open.
    OtherOrder,
    /// As many rows, of which a limit has chosen others among those that the query's order does not tell apart.
    OtherChoice,
    /// The same, by the plan that was replaced: the pool refused memory that a fragment needs.
    NoMemory,
    Different(String),
}

pub fn compare(without: &Answer, with: &Answer) -> Verdict {
    let verdict = compare_results(without, with);
    match &with.fell_back {
        Some(failure) if !matches!(verdict, Verdict::Different(_)) => {
            if failure.contains("memory refused") {
                Verdict::NoMemory
            } else {
                Verdict::Different(format!("an error of kernels: {failure}"))
            }
        }
        _ => verdict,
    }
}

fn compare_results(without: &Answer, with: &Answer) -> Verdict {
    if without.is_explain {
        return match (&without.result, &with.result) {
            (Ok(_), Err(error)) => Verdict::Different(format!("an error with Quern alone: {error}")),
            _ => Verdict::Same,
        };
    }
    match (&without.result, &with.result) {
        (Err(_), Err(_)) => Verdict::Same,
        (Ok(_), Err(error)) => Verdict::Different(format!("an error with Quern alone: {error}")),
        (Err(error), Ok(_)) => Verdict::Different(format!("no error with Quern: {error}")),
        (Ok(expected), Ok(given)) => tables(expected, given),
    }
}

fn tables(expected: &Table, given: &Table) -> Verdict {
    if expected.types != given.types {
        return Verdict::Different(format!("types {:?}; without Quern {:?}", given.types, expected.types));
    }
    if expected.rows == given.rows {
        return Verdict::Same;
    }
    if expected.rows.len() != given.rows.len() {
        return Verdict::Different(difference(expected, given));
    }
    if expected.keys != given.keys {
        return Verdict::Different(format!("keys of the order: {}", difference(expected, given)));
    }
    // Rows whose order a hidden key decides are not told apart here.
    if sorted(&expected.rows) == sorted(&given.rows) {
        return if expected.order.has_others {
            Verdict::Different(format!("order by keys that are not shown: {}", difference(expected, given)))
        } else {
            Verdict::OtherOrder
        };
    }
    if expected.order.is_limited && !expected.order.has_others && settled(expected) == settled(given) {
        return Verdict::OtherChoice;
    }
    Verdict::Different(difference(expected, given))
}

/// The rows whose key is not that of the last one.
fn settled(table: &Table) -> Vec<&Vec<String>> {
    let last = table.keys.last();
    let rows = table.rows.iter().zip(&table.keys).filter(|(_, key)| Some(*key) != last);
    sorted(rows.map(|(row, _)| row))
}

fn sorted<'a>(rows: impl IntoIterator<Item = &'a Vec<String>>) -> Vec<&'a Vec<String>> {
    let mut sorted: Vec<_> = rows.into_iter().collect();
    sorted.sort();
    sorted
}

/// A few rows that only one of both has.
fn difference(expected: &Table, given: &Table) -> String {
    let mut text = format!("{} rows; without Quern {}", given.rows.len(), expected.rows.len());
    let (all_expected, all_given) = (sorted(&expected.rows), sorted(&given.rows));
    let without = |rows: &[&Vec<String>], others: &[&Vec<String>]| -> Vec<String> {
        let missing = rows.iter().filter(|row| others.binary_search(row).is_err());
        missing.take(5).map(|row| row.join(" | ")).collect()
    };
    for row in without(&all_expected, &all_given) {
        text.extend(["\n      - ", &row]);
    }
    for row in without(&all_given, &all_expected) {
        text.extend(["\n      + ", &row]);
    }
    text
}
