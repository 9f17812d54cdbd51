// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! OCI images as directories (image-layout.md of the OCI's image specification), as skopeo and oras write them: the layers
//! of the one image in it, each checked by its digest. Reading a registry takes credentials and a protocol of its own;
//! those programs have both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use onramp_files::bounded;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::MOST_BYTES;
use super::digest::Sha256Digest;
use super::error::SourceError;
use super::tree;
use super::unpack::Unpacked;
use crate::guest::GuestError;

/// Where oras keeps the name of a file.
const TITLE: &str = "org.opencontainers.image.title";
/// The processor that guests have, by Go's name.
const ARCHITECTURE: &str = "amd64";
/// Indexes in indexes, at most.
const DEPTH_MAX: usize = 3;

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    #[serde(default, rename = "mediaType")]
    media_type: String,
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
}

/// Whether there is such an image in a directory.
pub(super) fn is_image(directory: &Path) -> bool {
    directory.join("oci-layout").is_file()
}

/// An image in a directory.
pub(super) struct Image<'a> {
    pub directory: &'a Path,
    /// Names it in errors.
    pub at: &'a str,
}

impl Image<'_> {
    /// Unpacks its layers into a directory. `digest` is that of its manifest, or of the index that names it.
    ///
    /// # Errors
    /// [`SourceError`] where it lacks something, or a blob is not what its digest says.
    pub fn unpack(&self, digest: Option<&Sha256Digest>, into: &Path) -> Result<(), GuestError> {
        let path = self.directory.join("index.json");
        let index = bounded::read(&path, MOST_BYTES).map_err(GuestError::file("read", &path))?;
        let mut chosen = self.only(self.parse::<Index>(&index, "index.json")?)?;
        if let Some(expected) = digest
            && self.digest(&chosen)? != *expected
        {
            let (expected, found) = (expected.digits().to_owned(), self.digest(&chosen)?.digits().to_owned());
            return Err(SourceError::Digest { at: self.at.to_owned(), expected, found }.into());
        }
        let mut depth = 0;
        while chosen.media_type.contains("index") || chosen.media_type.contains("manifest.list") {
            depth += 1;
            if depth > DEPTH_MAX {
                return Err(self.wrong("its indexes name indexes").into());
            }
            let index = self.blob(&chosen)?;
            chosen = self.only(self.parse::<Index>(&index, &chosen.digest)?)?;
        }
        let manifest = self.blob(&chosen)?;
        let manifest = self.parse::<Manifest>(&manifest, &chosen.digest)?;
        let mut unpacked = Unpacked::new(into);
        for layer in &manifest.layers {
            let content = self.blob(layer)?;
            let title = layer.annotations.get(TITLE).filter(|title| tree::is_kernel(title));
            match title {
                // oras stores a file as it is.
                Some(title) if !Unpacked::is_archive(&content) => {
                    let path = into.join(title);
                    fs::write(&path, content).map_err(GuestError::file("write", &path))?;
                }
                _ => unpacked.add(&content, &format!("{}: {}", self.at, layer.digest))?,
            }
        }
        Ok(())
    }

    /// The only image for the guests' processor.
    fn only(&self, index: Index) -> Result<Descriptor, SourceError> {
        let runs = |one: &Descriptor| {
            one.platform.as_ref().is_none_or(|platform| platform.architecture == ARCHITECTURE)
        };
        let mut images: Vec<_> = index.manifests.into_iter().filter(runs).collect();
        match (images.pop(), images.len()) {
            (Some(image), 0) => Ok(image),
            (None, _) => Err(self.wrong("it has no image for linux/amd64")),
            (Some(_), more) => Err(self.wrong(&format!("it has {} images: give one with one", more + 1))),
        }
    }

    fn digest(&self, of: &Descriptor) -> Result<Sha256Digest, SourceError> {
        let digest = of.digest.strip_prefix("sha256:").and_then(|digits| digits.parse().ok());
        digest.ok_or_else(|| self.wrong(&format!("{:?} is no digest by SHA-256", of.digest)))
    }

    /// What a digest names.
    fn blob(&self, of: &Descriptor) -> Result<Vec<u8>, GuestError> {
        let digest = self.digest(of)?;
        let path: PathBuf = self.directory.join("blobs/sha256").join(digest.digits());
        if !path.is_file() {
            return Err(self.wrong(&format!("its blob {} is missing", of.digest)).into());
        }
        let content = bounded::read(&path, MOST_BYTES).map_err(GuestError::file("read", &path))?;
        digest.require(&content, &format!("{}: blobs/sha256/{}", self.at, digest.digits()))?;
        Ok(content)
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8], what: &str) -> Result<T, SourceError> {
        serde_json::from_slice(text).map_err(|error| self.wrong(&format!("{what}: {error}")))
    }

    fn wrong(&self, message: &str) -> SourceError {
        SourceError::Image { at: self.at.to_owned(), message: message.to_owned() }
    }
}
