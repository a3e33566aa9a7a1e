// SPDX-License-Identifier: Apache-2.0
//! What was found.

use std::collections::BTreeMap;
use std::path::Path;

use crate::compare::Verdict;
use crate::engine::Answer;

/// Places of differences that are no defects, each with the reason.
const EXPLAINED: &str = include_str!("../explained.txt");

/// Counts and differences of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub files: usize,
    statements: usize,
    queries: usize,
    /// Queries with fragments, and their nodes.
    replaced: usize,
    nodes: usize,
    other_orders: usize,
    other_choices: usize,
    no_memory: usize,
    explained: BTreeMap<String, String>,
    num_explained: usize,
    unexplained: usize,
    skipped: Vec<(String, String)>,
    lacking: Vec<(String, Vec<String>)>,
    unlike: BTreeMap<String, usize>,
}

impl Report {
    pub fn new() -> Result<Self, String> {
        let mut explained = BTreeMap::new();
        for line in EXPLAINED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (place, reason) = line.split_once(' ').ok_or_else(|| format!("explained.txt: no reason: {line}"))?;
            explained.insert(place.to_owned(), reason.trim().to_owned());
        }
        Ok(Self { explained, ..Self::default() })
    }

    pub fn skip(&mut self, file: &Path, reason: &str) {
        self.skipped.push((file.display().to_string(), reason.to_owned()));
    }

    pub fn lacks(&mut self, file: &Path, data: Vec<String>) {
        self.lacking.push((file.display().to_string(), data));
    }

    /// A record that `DataFusion` alone answers in another way than its file says.
    pub fn unlike_file(&mut self, file: &Path) {
        *self.unlike.entry(file.display().to_string()).or_default() += 1;
    }

    pub fn count(&mut self, is_query: bool, answers: &[Answer]) {
        *(if is_query { &mut self.queries } else { &mut self.statements }) += 1;
        let nodes: usize = answers.iter().map(|answer| answer.nodes).sum();
        self.replaced += usize::from(nodes != 0);
        self.nodes += nodes;
    }

    pub fn judge(&mut self, place: &str, sql: &str, verdicts: &[Verdict]) {
        for verdict in verdicts {
            match verdict {
                Verdict::Same => {}
                Verdict::OtherOrder => self.other_orders += 1,
                Verdict::OtherChoice => self.other_choices += 1,
                Verdict::NoMemory => self.no_memory += 1,
                Verdict::Different(_) if self.explained.contains_key(place) => self.num_explained += 1,
                Verdict::Different(text) => {
                    self.unexplained += 1;
                    println!("  different: {place}: {text}\n    {}", sql.trim().replace('\n', "\n    "));
                }
            }
        }
    }

    pub fn is_good(&self) -> bool {
        self.unexplained == 0 && self.nodes != 0
    }

    pub fn print(&self) {
        for (file, reason) in &self.skipped {
            println!("skipped: {file}: {reason}");
        }
        for (file, data) in &self.lacking {
            println!("without some of its data: {file}: {}", data.join(", "));
        }
        for (file, records) in &self.unlike {
            println!("unlike the file without Quern, too: {file}: {records} statements");
        }
        println!(
            "{} files, {} skipped, {} without some of their data; {} statements and {} queries, of which {} unlike \
             the file without Quern, too",
            self.files,
            self.skipped.len(),
            self.lacking.len(),
            self.statements,
            self.queries,
            self.unlike.values().sum::<usize>()
        );
        println!(
            "{} ran kernels, in {} nodes; {} of them as the plans that were replaced, as pools refused memory",
            self.replaced, self.nodes, self.no_memory
        );
        println!(
            "{} in another order that the query leaves open, {} with another choice of a limit, {} differences \
             explained, {} unexplained",
            self.other_orders, self.other_choices, self.num_explained, self.unexplained
        );
    }
}
