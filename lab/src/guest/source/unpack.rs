// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Archives: a Debian package or a tar archive, plain or compressed. Of what is in one only files are taken, and of these
//! only those that a kernel or an OCI image is made of: no links, no devices, no owners, no modes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use object::read::archive::ArchiveFile;
use tar::EntryType;

use super::error::SourceError;
use super::tree;
use crate::guest::{GuestError, compressed};

/// What a Debian package begins with.
const PACKAGE: &[u8] = b"!<arch>\n";
/// What stands at this place in a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Blocks of a tar archive, bytes.
const BLOCK: u64 = 512;
/// Before the name of what a layer of an image takes away from those below it.
const WHITEOUT: &[u8] = b".wh.";
/// Takes away all that was in its directory.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// At the root of an archive of Docker's own format.
pub(super) const DOCKERS: &str = "manifest.json";
/// Most that is unpacked, bytes.
const MOST_BYTES: u64 = 1 << 32;

/// Archives that are unpacked into one directory, the later ones over the earlier.
pub(super) struct Unpacked<'a> {
    into: &'a Path,
    /// What may still be written, bytes.
    left: u64,
}

impl<'a> Unpacked<'a> {
    /// Into an empty directory.
    pub fn new(into: &'a Path) -> Self {
        Self { into, left: MOST_BYTES }
    }

    /// Whether these bytes are an archive.
    pub fn is_archive(bytes: &[u8]) -> bool {
        bytes.starts_with(PACKAGE) || compressed::format(bytes).is_some() || is_tar(bytes)
    }

    /// Unpacks an archive, which is at `at`.
    ///
    /// # Errors
    /// [`SourceError`] where it is none, damaged, too large, or would write elsewhere; [`GuestError::Missing`] without the
    /// program that decompresses it.
    pub fn add(&mut self, bytes: &[u8], at: &str) -> Result<(), GuestError> {
        let bytes = if bytes.starts_with(PACKAGE) { data_of_package(bytes, at)? } else { bytes };
        let Some(format) = compressed::format(bytes) else {
            return if is_tar(bytes) {
                self.tar(bytes, at)
            } else {
                Err(SourceError::NoArchive { at: at.to_owned() }.into())
            };
        };
        let (unpacked, failure) = format.read(bytes, |decompressed| self.tar(decompressed, at))?;
        match (unpacked, failure) {
            // What ends early does so because the program did.
            (Ok(()) | Err(GuestError::Source(SourceError::Damaged { .. })), Some(message)) => {
                Err(damaged(at, message).into())
            }
            (unpacked, _) => unpacked,
        }
    }

    fn tar(&mut self, reader: impl Read, at: &str) -> Result<(), GuestError> {
        let failed = |error: io::Error| damaged(at, error.to_string());
        let mut reader = Counted { reader, bytes: 0 };
        let mut archive = tar::Archive::new(&mut reader);
        // Where the last member ends.
        let mut end = 0;
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let blocks = entry.header().entry_size().map_err(failed)?.div_ceil(BLOCK);
            end = entry.raw_file_position() + blocks * BLOCK;
            let path = inside(&entry.path_bytes(), at)?;
            self.member(&path, &mut entry, at)?;
        }
        if reader.bytes <= end {
            return Err(damaged(at, "its end is missing".into()).into());
        }
        // What decompresses it comes to its end, too.
        io::copy(&mut reader, &mut io::sink()).map_err(failed)?;
        Ok(())
    }

    fn member(&mut self, path: &Path, entry: &mut tar::Entry<impl Read>, at: &str) -> Result<(), GuestError> {
        self.require_kept(path, at)?;
        if !is_wanted(path) {
            return Ok(());
        }
        let member = || path.display().to_string();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {}
            EntryType::Link => {
                return Err(SourceError::HardLink { at: at.to_owned(), member: member() }.into());
            }
            _ => return Ok(()),
        }
        if entry.size() > self.left {
            return Err(SourceError::Large { at: at.to_owned(), most_bytes: MOST_BYTES }.into());
        }
        let path = self.into.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(GuestError::file("create", parent))?;
        }
        let mut file = File::create(&path).map_err(GuestError::file("create", &path))?;
        let written = io::copy(entry, &mut file).map_err(|error| damaged(at, error.to_string()))?;
        if written < entry.size() {
            return Err(damaged(at, format!("{} ends early", member())).into());
        }
        self.left -= written;
        Ok(())
    }

    /// That a layer does not take away what an earlier one has brought.
    fn require_kept(&self, path: &Path, at: &str) -> Result<(), SourceError> {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let Some(gone) = name.strip_prefix(WHITEOUT) else { return Ok(()) };
        let parent = path.parent().unwrap_or(path);
        let gone = if name == OPAQUE { parent.to_owned() } else { parent.join(OsStr::from_bytes(gone)) };
        if self.into.join(&gone).exists() {
            let message =
                format!("it takes away {} of an earlier layer: make it of one layer", gone.display());
            return Err(SourceError::Image { at: at.to_owned(), message });
        }
        Ok(())
    }
}

/// Files of a kernel, and of an OCI image.
fn is_wanted(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| tree::is_kernel(name) || tree::is_of_modules(name))
        || ["oci-layout", "index.json", DOCKERS].iter().any(|file| path == Path::new(file))
        || path.starts_with("blobs")
}

/// The path of a member, without dots.
fn inside(path: &[u8], at: &str) -> Result<PathBuf, SourceError> {
    let path = Path::new(OsStr::from_bytes(path));
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::CurDir => Some(PathBuf::new()),
        _ => None,
    };
    let outside = || SourceError::Outside { at: at.to_owned(), member: path.display().to_string() };
    path.components().map(part).collect::<Option<PathBuf>>().ok_or_else(outside)
}

/// The files of a Debian package: an archive in the archive.
fn data_of_package<'a>(bytes: &'a [u8], at: &str) -> Result<&'a [u8], SourceError> {
    let failed = |error: object::Error| damaged(at, error.to_string());
    let package = ArchiveFile::parse(bytes).map_err(failed)?;
    for member in package.members() {
        let member = member.map_err(failed)?;
        if member.name().starts_with(b"data.tar") {
            return member.data(bytes).map_err(failed);
        }
    }
    Err(damaged(at, "it has no data.tar, which a Debian package has".into()))
}

fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1))
}

fn damaged(at: &str, message: String) -> SourceError {
    SourceError::Damaged { at: at.to_owned(), message }
}

/// Counts what is read.
struct Counted<R> {
    reader: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}
