// SPDX-License-Identifier: Apache-2.0
//! Finds `libquern.so`: in the folder that `QUERN_LIB_DIR` names, else in the build folder of this source tree.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-env-changed=QUERN_LIB_DIR");
    let folder = env::var_os("QUERN_LIB_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../build/lib"), PathBuf::from);
    let folder = folder.canonicalize().unwrap_or(folder);
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=quern");
    // Crates that link this one ask for the folder as DEP_QUERN_LIB_DIR, to give their programs an rpath.
    println!("cargo:lib_dir={}", folder.display());
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
}
