// SPDX-License-Identifier: Apache-2.0
//! The files, and the data that they read.

use std::path::{Path, PathBuf};

use datafusion_sqllogictest::read_dir_recursive;

const FOLDER: &str = "test_files";

/// All files, or those with one of the parts in their names.
pub fn list(parts: &[String]) -> Result<Vec<PathBuf>, String> {
    let all = read_dir_recursive(FOLDER).map_err(|error| error.to_string())?;
    let mut files: Vec<_> = all
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .filter(|path| {
            let name = relative(path).to_string_lossy();
            parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
        })
        .collect();
    files.sort();
    if files.is_empty() { Err(format!("no file of {FOLDER} fits")) } else { Ok(files) }
}

pub fn relative(path: &Path) -> &Path {
    path.strip_prefix(FOLDER).unwrap_or(path)
}

/// What a file names outside of its own folder, or as the tables of TPC-H, that is not there.
pub fn missing_data(path: &Path) -> Result<Vec<String>, String> {
    let mut text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(folder) = path.parent()
        && text.contains("include ./create_tables.slt.part")
    {
        let tables = folder.join("create_tables.slt.part");
        text += &std::fs::read_to_string(&tables).map_err(|error| format!("{}: {error}", tables.display()))?;
    }
    let mut missing: Vec<String> = text
        .split(['\'', '"'])
        .filter(|part| part.starts_with("../") || part.starts_with("test_files/tpch/data/"))
        .filter(|part| !part.contains(['*', '\n']) && !Path::new(part).exists())
        .map(str::to_owned)
        .collect();
    missing.sort();
    missing.dedup();
    Ok(missing)
}
