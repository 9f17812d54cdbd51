// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What can be wrong with a source of a kernel.

use std::path::PathBuf;

use thiserror::Error;

/// What can be wrong with a source of a kernel. `at` is the source as it was given, unless it says otherwise.
#[derive(Debug, Error)]
pub enum SourceError {
    /// It is of a kind that is not read.
    #[error(
        "{scheme}: is not read: give a path, http:// or https://; copy an image from elsewhere into a directory first, as \
         skopeo copy docker://… oci:DIR does"
    )]
    Scheme {
        /// The source.
        at: String,
        /// What stands before its colon.
        scheme: String,
    },
    /// It is not there.
    #[error("there is no {at}: give a directory, an archive, or a URL of http or https")]
    NotThere {
        /// The source.
        at: String,
    },
    /// What comes from the network has no digest.
    #[error("{at}: a URL needs the digest of what is there: give --sha256")]
    NoDigest {
        /// The source.
        at: String,
    },
    /// A plain directory has no digest.
    #[error(
        "{at} is a directory, which has no digest: leave --sha256 out, or give an archive or an OCI image"
    )]
    Directory {
        /// The source.
        at: String,
    },
    /// This is not a digest.
    #[error("a SHA-256 digest has 64 hexadecimal digits, as sha256sum prints them")]
    NotADigest {
        /// As given.
        text: String,
    },
    /// It is another file than the digest says.
    #[error("{at} has the digest {found}, not {expected}")]
    Digest {
        /// The source, or the file of it.
        at: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// It could not be had from the network.
    #[error("{at} cannot be fetched: {message}")]
    Download {
        /// The source.
        at: String,
        /// What curl said.
        message: String,
    },
    /// It is larger than what is read.
    #[error("{at} has more than {most_bytes} bytes, which is the most that is read")]
    Large {
        /// The source.
        at: String,
        /// The limit.
        most_bytes: u64,
    },
    /// It is no archive.
    #[error("{at} is no archive: give a .deb or a tar archive, plain or compressed by gzip, xz, zstd or lz4")]
    NoArchive {
        /// The source, or the file of it.
        at: String,
    },
    /// The archive is damaged.
    #[error("{at} is cut short or damaged: {message}")]
    Damaged {
        /// The source, or the file of it.
        at: String,
        /// How.
        message: String,
    },
    /// The archive has a member that would be outside of the directory into which it is unpacked.
    #[error(
        "{at} has the member {member:?}, which is outside of where it is unpacked: nothing of it is taken"
    )]
    Outside {
        /// The source, or the file of it.
        at: String,
        /// Name of the member.
        member: String,
    },
    /// A file of the kernel is a hard link.
    #[error("{at} has {member:?} as a hard link: pack it with tar --hard-dereference")]
    HardLink {
        /// The source, or the file of it.
        at: String,
        /// Name of the member.
        member: String,
    },
    /// The OCI image is not one that can be read.
    #[error("{at} is no OCI image that can be read: {message}")]
    Image {
        /// The source.
        at: String,
        /// Why.
        message: String,
    },
    /// There is no kernel in it.
    #[error("{at} has no kernel: no file vmlinuz or vmlinuz-RELEASE")]
    NoKernel {
        /// The source.
        at: String,
    },
    /// There are no modules in it.
    #[error(
        "{at} has no modules: no directory with modules.builtin, as /lib/modules/RELEASE is; they may be in another \
         package"
    )]
    NoModules {
        /// The source.
        at: String,
    },
    /// There are several in it.
    #[error("{at} has several {what}: {}: give one with a single one", list(.found))]
    Several {
        /// The source.
        at: String,
        /// `kernels`, …
        what: &'static str,
        /// Their paths in it.
        found: Vec<PathBuf>,
    },
    /// The kernel is not one that a guest boots.
    #[error("{at}: {file} is no kernel that a guest boots: it is no bzImage of x86-64")]
    NotBootable {
        /// The source.
        at: String,
        /// The file.
        file: String,
    },
    /// The kernel is of another series than was asked for.
    #[error("{at} has the kernel {release}, which is not of series {series}")]
    OtherSeries {
        /// The source.
        at: String,
        /// The series that was asked for.
        series: String,
        /// The kernel's release.
        release: String,
    },
    /// The modules are those of another kernel.
    #[error("{at} has the kernel {release}, but modules of {modules}")]
    OtherModules {
        /// The source.
        at: String,
        /// The kernel's release.
        release: String,
        /// The modules' release.
        modules: String,
    },
    /// The kernel does not describe its types.
    #[error("{at}: the kernel {release} has no BTF (CONFIG_DEBUG_INFO_BTF), without which nothing attaches")]
    NoBtf {
        /// The source.
        at: String,
        /// The kernel's release.
        release: String,
    },
}

impl SourceError {
    /// Whether the command line is wrong, whatever is there.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Scheme { .. }
                | Self::NotThere { .. }
                | Self::NoDigest { .. }
                | Self::Directory { .. }
                | Self::NotADigest { .. }
        )
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
