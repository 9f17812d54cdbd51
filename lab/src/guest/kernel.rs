// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Kernels of guests: stock kernels of Debian by series, fetched into a cache when asked for by name, or a directory
//! with a kernel and its modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::Deserialize;

use super::{GuestError, bzimage};

/// Processor of a guest whose kernel is not one of the series: as that of the newest.
const PROCESSOR: &str = "Nehalem";
/// Unpacks a package of another suite into a directory, by the machine's own package client.
const FETCH: &str = include_str!("fetch.sh");
/// Its exit code where the suite has gone on to another series.
const SUPERSEDED: i32 = 4;

/// A kernel that can be named by its series, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// `6.12`.
    pub series: String,
    /// Debian's suite.
    pub suite: String,
    /// The package that stands for its newest kernel there.
    pub package: String,
    /// Name of the processor that QEMU is to emulate.
    pub processor: String,
}

#[derive(Deserialize)]
struct List {
    kernel: Vec<Series>,
}

impl Series {
    /// All, oldest first.
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Series>> = OnceLock::new();
        // A test reads it; a list that cannot be read would be no kernels.
        ALL.get_or_init(|| {
            toml::from_str::<List>(include_str!("kernels.toml"))
                .map_or_else(|_| Vec::new(), |list| list.kernel)
        })
    }

    /// The one of this name.
    ///
    /// # Errors
    /// [`GuestError::UnknownKernel`] naming those there are.
    pub fn find(name: &str) -> Result<&'static Self, GuestError> {
        Self::all().iter().find(|one| one.series == name).ok_or_else(|| {
            let known: Vec<_> = Self::all().iter().map(|one| one.series.as_str()).collect();
            GuestError::UnknownKernel { asked: name.to_owned(), known: known.join(", ") }
        })
    }

    /// Whether a kernel of this release is of it: `6.12.107+deb13-cloud-amd64` of `6.12`.
    pub(super) fn has(&self, release: &str) -> bool {
        release.strip_prefix(&self.series).is_some_and(|rest| rest.starts_with(['.', '-', '+']))
    }

    /// The kernel in the cache.
    ///
    /// # Errors
    /// [`GuestError::NotFetched`] if it is not there.
    pub fn kept(&self) -> Result<Kernel, GuestError> {
        let cache = cache()?.join("kernels");
        let directory = cache.join(&self.series).join("current");
        if !directory.exists() {
            return Err(GuestError::NotFetched { series: self.series.clone(), cache });
        }
        // The link goes to a newer version when one is fetched.
        let directory = fs::canonicalize(&directory).map_err(GuestError::file("read", &directory))?;
        Kernel::read(&directory, &self.processor)
    }

    /// Fetches it into the cache with apt-get, unless it is there and `newest` is not asked for. What apt-get says
    /// goes to stderr. Touches nothing else of the machine's packages.
    ///
    /// # Errors
    /// [`GuestError::Superseded`] if the suite has another series by now; [`GuestError::Fetch`] with the reason;
    /// [`GuestError::Missing`] without apt-get.
    pub fn fetch(&self, newest: bool) -> Result<Kernel, GuestError> {
        if !newest && let Ok(kernel) = self.kept() {
            return Ok(kernel);
        }
        for (program, package) in [("apt-get", "apt"), ("dpkg", "dpkg"), ("bash", "bash")] {
            super::programs::find(program, package)?;
        }
        let home = cache()?.join("kernels").join(&self.series);
        fs::create_dir_all(&home).map_err(GuestError::file("create", &home))?;
        let output = Command::new("bash")
            .args(["-c", FETCH, "fetch.sh", &self.suite, &self.package, &self.series])
            .arg(&home)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| GuestError::Run { program: "bash".into(), message: source.to_string() })?;
        if output.status.code() == Some(SUPERSEDED) {
            let release = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let (series, suite) = (self.series.clone(), self.suite.clone());
            // What is kept is then the newest of its series.
            return self.kept().map_err(|_| GuestError::Superseded { series, suite, release });
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let message =
                said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
            return Err(GuestError::Fetch { series: self.series.clone(), message });
        }
        self.kept()
    }
}

/// A kernel that a guest can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What `uname -r` says in it, `6.12.107+deb13-cloud-amd64`.
    pub release: String,
    /// The kernel.
    pub vmlinuz: PathBuf,
    /// Its modules, as below /lib/modules/RELEASE.
    pub modules: PathBuf,
    /// Name of the processor that QEMU is to emulate.
    pub processor: String,
}

impl Kernel {
    /// The kernel that a user names: a series, or the path of a directory with `vmlinuz` and `modules/`.
    ///
    /// # Errors
    /// [`GuestError`]: unknown, not fetched, or not a kernel.
    pub fn named(name: &str) -> Result<Self, GuestError> {
        if name.contains('/') {
            return Self::read(Path::new(name), PROCESSOR);
        }
        Series::find(name)?.kept()
    }

    pub(super) fn read(directory: &Path, processor: &str) -> Result<Self, GuestError> {
        let (vmlinuz, modules) = (directory.join("vmlinuz"), directory.join("modules"));
        for (path, missing) in [(&vmlinuz, "vmlinuz"), (&modules, "modules/")] {
            if !path.exists() {
                return Err(GuestError::Incomplete { directory: directory.into(), missing });
            }
        }
        let image = fs::read(&vmlinuz).map_err(GuestError::file("read", &vmlinuz))?;
        let missing = "vmlinuz that is a bzImage";
        let release = bzimage::release(&image)
            .ok_or_else(|| GuestError::Incomplete { directory: directory.into(), missing })?;
        Ok(Self { release, vmlinuz, modules, processor: processor.to_owned() })
    }
}

/// Where kernels and results are kept: `ONRAMP_CACHE`, or `onramp` in `XDG_CACHE_HOME` or `~/.cache`.
///
/// # Errors
/// [`GuestError::NoCache`] where none of these is set.
pub fn cache() -> Result<PathBuf, GuestError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("ONRAMP_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("onramp")))
        .or_else(|| Some(variable("HOME")?.join(".cache/onramp")))
        .ok_or(GuestError::NoCache)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_found_by_name_and_an_unknown_one_names_those_there_are() {
        let names: Vec<_> = Series::all().iter().map(|one| one.series.as_str()).collect();
        assert_eq!(names, ["6.1", "6.12", "7.2"]);
        assert_eq!(Series::find("6.12").unwrap().suite, "trixie");
        let error = Series::find("5.4").unwrap_err().to_string();
        assert!(error.contains("\"5.4\"") && error.contains("6.1, 6.12, 7.2"), "{error}");
    }

    #[test]
    fn a_directory_without_a_kernel_says_what_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let says = || Kernel::named(directory.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(says().contains("vmlinuz"), "{}", says());
        fs::write(directory.path().join("vmlinuz"), "no kernel").unwrap();
        assert!(says().contains("modules/"), "{}", says());
        fs::create_dir(directory.path().join("modules")).unwrap();
        assert!(says().contains("bzImage"), "{}", says());
    }
}
