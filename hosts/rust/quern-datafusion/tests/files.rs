// SPDX-License-Identifier: Apache-2.0
//! Joins of Parquet files, whose last source is read while tables are built, and begun anew where a table's keys let it
//! read less.

mod common;

use std::path::{Path, PathBuf};

use common::{Rows, Setting, answer, nodes, sessions};
use datafusion::common::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("quern-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Files: `facts`, in the order of their keys, in row groups of 2,000; `every`, all their keys; `few`, some neighbours.
async fn write_files(context: &SessionContext, folder: &Path) -> Result<()> {
    let tables = [
        ("facts", "select value / 3 as k, value * 7 % 60000 as x, value % 7 as g from generate_series(0, 59999)"),
        ("every", "select value * 7 % 20000 as k, value % 5 as y from generate_series(0, 19999)"),
        ("few", "select value as k, value % 5 as y from generate_series(700, 900)"),
    ];
    for (name, rows) in tables {
        let file = folder.join(name).with_extension("parquet");
        let options = "stored as parquet options ('format.max_row_group_size' 2000)";
        context.sql(&format!("copy ({rows}) to '{}' {options}", file.display())).await?.collect().await?;
    }
    Ok(())
}

const QUERIES: [&str; 5] = [
    "select d.y, count(*), sum(f.x) from facts f join every d on f.k = d.k group by d.y",
    "select d.y, count(*), sum(f.x) from facts f join few d on f.k = d.k group by d.y",
    "select f.x, d.y from facts f join few d on f.k = d.k",
    "select f.x, d.y from facts f join every d on f.k = d.k where f.g = 3 and d.y = 1",
    "select e.y, sum(f.x) from facts f join every d on f.k = d.k join few e on d.y = e.k - 700 group by e.y",
];

async fn compare(partitions: usize, batch_rows: usize) -> Result<()> {
    let setting = Setting { partitions, batch_rows, ..Setting::default() };
    let (stock, quern) = sessions(setting, Rows { a: 1, b: 1, c: 1 }).await;
    let folder = Folder::new(&format!("files-{partitions}-{batch_rows}"))?;
    write_files(&stock, &folder.0).await?;
    for context in [&stock, &quern] {
        context.sql("set datafusion.optimizer.repartition_file_min_size = 1").await?;
        for table in ["facts", "every", "few"] {
            let file = folder.0.join(table).with_extension("parquet");
            context.register_parquet(table, &file.to_string_lossy(), ParquetReadOptions::default()).await?;
        }
    }
    for query in QUERIES {
        assert_ne!(nodes(&quern, query).await, 0, "{query}");
        let expected = answer(&stock, query).await?;
        for _ in 0..5 {
            assert_eq!(answer(&quern, query).await?, expected, "{query} with {setting:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn one_partition() -> Result<()> {
    compare(1, 8192).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_partitions() -> Result<()> {
    compare(2, 1000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_partitions() -> Result<()> {
    compare(8, 500).await
}
