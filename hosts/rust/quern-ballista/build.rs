// SPDX-License-Identifier: Apache-2.0
//! Gives programs and tests the folder of `libquern.so` as their rpath.

use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=DEP_QUERN_LIB_DIR");
    if let Some(folder) = env::var_os("DEP_QUERN_LIB_DIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
}
