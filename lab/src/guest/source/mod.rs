// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Kernels from elsewhere than Debian's archive, for machines without apt and for those without a network: a directory, an
//! archive, a URL with its digest, an OCI image. All are read into a tree, in which the kernel and its modules are found by
//! their names.
//!
//! What has a digest is checked before anything of it is unpacked. All is made beside the cache and renamed into it at the
//! end, once a guest could run on it: a kernel is kept whole or not at all.

mod check;
mod digest;
mod download;
mod error;
mod image;
#[cfg(test)]
mod tests;
mod tree;
mod unpack;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use onramp_files::bounded;

pub use digest::Sha256Digest;
pub use error::SourceError;
use image::{Image, is_image};
use tree::Tree;
use unpack::{DOCKERS, Unpacked};

use super::kernel::cache;
use super::{GuestError, Kernel, Series};

/// Largest file that is read, bytes.
const MOST_BYTES: u64 = 1 << 31;
/// Digits of the digest that a kernel's directory is called by.
const DIGITS: usize = 16;

/// Where a kernel is to come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A directory, or an archive as a file.
    Path(PathBuf),
    /// An archive at a URL of http or https.
    Url(String),
}

impl FromStr for Source {
    type Err = SourceError;

    /// What begins with `NAME:` and is no file is a URL.
    fn from_str(text: &str) -> Result<Self, SourceError> {
        let is_scheme = |scheme: &str| {
            scheme.len() > 1
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.filter(|scheme| is_scheme(scheme) && !Path::new(text).exists()) {
            Some(scheme) if scheme == "http" || scheme == "https" => Ok(Self::Url(text.to_owned())),
            Some(scheme) => Err(SourceError::Scheme { at: text.to_owned(), scheme }),
            None => Ok(Self::Path(text.into())),
        }
    }
}

impl Series {
    /// Fetches it into the cache from a source, in place of what is kept, and checks that a guest can run on it. `digest` is
    /// that of the archive, or of the manifest of an OCI image in a directory.
    ///
    /// # Errors
    /// [`SourceError`] where the source is not what it should be; [`GuestError`] where a program is missing, or the cache
    /// cannot be written. The cache is as it was then.
    pub fn fetch_from(&self, source: &Source, digest: Option<&Sha256Digest>) -> Result<Kernel, GuestError> {
        keep(self, &cache()?.join("kernels").join(&self.series), source, digest)?;
        self.kept()
    }
}

/// Puts the kernel of a source into the directory of its series.
fn keep(
    series: &Series,
    home: &Path,
    source: &Source,
    digest: Option<&Sha256Digest>,
) -> Result<(), GuestError> {
    if let (Source::Url(url), None) = (source, digest) {
        return Err(SourceError::NoDigest { at: url.clone() }.into());
    }
    if let Source::Path(path) = source
        && !path.try_exists().map_err(GuestError::file("read", path))?
    {
        return Err(SourceError::NotThere { at: path.display().to_string() }.into());
    }
    fs::create_dir_all(home).map_err(GuestError::file("create", home))?;
    let staging = Staging::begin(home)?;
    let (at, tree) = match source {
        Source::Url(url) => {
            (url.clone(), read(&download::download(url, MOST_BYTES)?, url, digest, &staging)?)
        }
        Source::Path(path) if path.is_dir() => {
            (path.display().to_string(), directory(path, digest, &staging)?)
        }
        Source::Path(path) => {
            let at = path.display().to_string();
            let bytes = bounded::read(path, MOST_BYTES).map_err(GuestError::file("read", path))?;
            (at.clone(), read(&bytes, &at, digest, &staging)?)
        }
    };
    let found = Tree::find(&tree, &at)?;
    let made = staging.path.join("kernel");
    let content = found.copy(&made, &at)?;
    check::kernel(&made, series, &at, &found.kernel_in(&tree))?;
    staging.keep(&made, &content[..DIGITS])
}

/// The tree of a directory: itself, unless it is an OCI image.
fn directory(path: &Path, digest: Option<&Sha256Digest>, staging: &Staging) -> Result<PathBuf, GuestError> {
    let at = path.display().to_string();
    if is_image(path) {
        let tree = staging.directory("tree")?;
        Image { directory: path, at: &at }.unpack(digest, &tree)?;
        return Ok(tree);
    }
    match digest {
        Some(_) => Err(SourceError::Directory { at }.into()),
        None => Ok(path.to_owned()),
    }
}

/// The tree of an archive, or of the OCI image in it.
fn read(
    bytes: &[u8],
    at: &str,
    digest: Option<&Sha256Digest>,
    staging: &Staging,
) -> Result<PathBuf, GuestError> {
    if let Some(digest) = digest {
        digest.require(bytes, at)?;
    }
    let files = staging.directory("files")?;
    Unpacked::new(&files).add(bytes, at)?;
    if !is_image(&files) {
        if files.join(DOCKERS).exists() {
            let message = "it is in Docker's format: save it by podman save --format oci-archive".to_owned();
            return Err(SourceError::Image { at: at.to_owned(), message }.into());
        }
        return Ok(files);
    }
    let tree = staging.directory("tree")?;
    Image { directory: &files, at }.unpack(None, &tree)?;
    Ok(tree)
}

/// Where a kernel is made, beside where it is kept; removed in the end. One at a time is made of a series, as when it is
/// fetched with apt-get (fetch.sh, which has the same names).
struct Staging {
    home: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl Staging {
    fn begin(home: &Path) -> Result<Self, GuestError> {
        let lock = home.join("lock");
        let file = File::create(&lock).map_err(GuestError::file("create", &lock))?;
        file.lock().map_err(GuestError::file("lock", &lock))?;
        let path = home.join("staging");
        // A killed one left it.
        if path.exists() {
            fs::remove_dir_all(&path).map_err(GuestError::file("remove", &path))?;
        }
        fs::create_dir(&path).map_err(GuestError::file("create", &path))?;
        Ok(Self { home: home.to_owned(), path, _lock: file })
    }

    fn directory(&self, name: &str) -> Result<PathBuf, GuestError> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(GuestError::file("create", &path))?;
        Ok(path)
    }

    /// Keeps what was made under a name, and makes it the one that is used.
    fn keep(&self, made: &Path, name: &str) -> Result<(), GuestError> {
        let kept = self.home.join(name);
        // The same content has the same name.
        if !kept.exists() {
            fs::rename(made, &kept).map_err(GuestError::file("rename", made))?;
        }
        let link = self.path.join("current");
        symlink(name, &link).map_err(GuestError::file("create", &link))?;
        fs::rename(&link, self.home.join("current")).map_err(GuestError::file("rename", &link))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What is left of it the next one removes.
        let _ = fs::remove_dir_all(&self.path);
    }
}
