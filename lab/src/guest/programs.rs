// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Programs of the host: where they are, and the shared libraries they need.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::GuestError;

/// Where a program is, by its name or path.
///
/// # Errors
/// [`GuestError::Missing`] naming the package that has it.
pub(super) fn find(name: &str, package: impl Into<Option<&'static str>>) -> Result<PathBuf, GuestError> {
    let package = package.into();
    let missing = || GuestError::Missing { program: name.to_owned(), package };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file()).ok_or_else(missing);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An ordinary user's path lacks the directories of the administrator's programs.
    let directories = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|path| path.is_file()).ok_or_else(missing)
}

/// The interpreter and the shared libraries of a program, by the paths at which it looks for them; none for a static
/// one or a script.
///
/// # Errors
/// [`GuestError::Run`] where `ldd` cannot be run or a library is missing.
pub(super) fn libraries(program: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let failed = |message: String| GuestError::Run { program: "ldd".into(), message };
    let output = Command::new("ldd").arg(program).output().map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.ends_with("not found")) {
        return Err(failed(format!(
            "{} needs a library that is not here: {}",
            program.display(),
            line.trim()
        )));
    }
    // `name => /path (address)`, `/interpreter (address)`; a static program: "not a dynamic executable".
    let paths = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_with_its_libraries() {
        let shell = find("sh", "dash").unwrap();
        let libraries = libraries(&shell).unwrap();
        assert!(libraries.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{libraries:?}");
        assert!(libraries.iter().all(|path| path.is_file()), "{libraries:?}");
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let error = find("qemu-system-nowhere", "qemu-system-x86").unwrap_err().to_string();
        assert!(
            error.contains("qemu-system-nowhere") && error.contains("apt-get install qemu-system-x86"),
            "{error}"
        );
    }
}
