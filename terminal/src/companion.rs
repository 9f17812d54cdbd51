// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The other program of the project: `onramp` executes `onramp-lab` for its words, and `onramp-lab` measures `onramp`.

use std::env;
use std::path::PathBuf;

use anyhow::anyhow;

/// Where the program of this name is: next to this one, else in PATH.
///
/// # Errors
/// If it is in neither, with the package that has it.
pub fn find(name: &str) -> anyhow::Result<PathBuf> {
    let this = env::current_exe().ok();
    let sibling = this.as_deref().and_then(|this| this.parent()).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    sibling
        .into_iter()
        .chain(env::split_paths(&path).filter(|directory| directory.is_absolute()))
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| {
            anyhow!("{name} is neither next to this program nor in PATH: install the package {name}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_path_and_a_missing_one_names_its_package() {
        assert!(find("sh").unwrap().is_file());
        assert!(find("onramp-nonsense").unwrap_err().to_string().contains("onramp-nonsense"));
    }
}
