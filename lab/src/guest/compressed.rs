// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is compressed, decompressed by the host's own programs: kernels, their modules, archives.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use super::{GuestError, programs};

/// What it begins with, the program that decompresses it, and the Debian package that has that.
pub(super) struct Format {
    magic: &'static [u8],
    program: &'static str,
    package: &'static str,
}

const FORMATS: [Format; 4] = [
    Format { magic: &[0x02, 0x21, 0x4c, 0x18], program: "lz4", package: "lz4" },
    Format { magic: &[0x28, 0xb5, 0x2f, 0xfd], program: "zstd", package: "zstd" },
    Format { magic: &[0xfd, b'7', b'z', b'X', b'Z'], program: "xz", package: "xz-utils" },
    Format { magic: &[0x1f, 0x8b], program: "gzip", package: "gzip" },
];

/// The format of what begins with these bytes; `None`: it is not compressed.
pub(super) fn format(bytes: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| bytes.starts_with(format.magic))
}

impl Format {
    /// Decompresses, and hands over what comes as it comes. The second is what the program said where it failed, which it
    /// also does if `read` stops before the end.
    ///
    /// # Errors
    /// [`GuestError::Missing`] without the program; [`GuestError::Run`] where it cannot be run.
    pub fn read<T>(
        &self,
        bytes: &[u8],
        read: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<(T, Option<String>), GuestError> {
        let mut child = Command::new(programs::find(self.program, self.package)?)
            .arg("-qdc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| self.failed(error.to_string()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        std::thread::scope(|scope| {
            // Both pipes at once, or both sides would wait. It may end before it has read all.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(bytes)));
            let taken = match stdout {
                Some(mut stdout) => read(&mut stdout),
                None => read(&mut io::empty()),
            };
            let output = child.wait_with_output().map_err(|error| self.failed(error.to_string()))?;
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("it cannot decompress it").trim().to_owned();
            Ok((taken, (!output.status.success()).then_some(said)))
        })
    }

    /// That the program failed with a message.
    pub fn failed(&self, message: String) -> GuestError {
        GuestError::Run { program: self.program.into(), message }
    }
}
