// SPDX-License-Identifier: Apache-2.0
//! The programs in `examples` print what their comments say. `cargo test` builds them.

use std::path::Path;
use std::process::Command;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The lines in the comment of a program that say what it prints.
fn expected(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| *line != "//! ```text").skip(1);
    lines.take_while(|line| *line != "//! ```").map(|line| line.trim_start_matches("//! ")).collect()
}

#[test]
fn examples_print_what_they_say() -> Outcome {
    let folder = std::env::current_exe()?;
    let folder = folder.parent().and_then(Path::parent).ok_or("no folder of programs")?.join("examples");
    for name in ["aggregate", "join", "spill"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
        let source = std::fs::read_to_string(source)?;
        let output = Command::new(folder.join(name)).output().map_err(|error| format!("{name}: {error}"))?;
        let printed = String::from_utf8(output.stdout)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected(&source), "{name}");
    }
    Ok(())
}
