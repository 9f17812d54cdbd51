// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether a guest of the lab can run on a kernel: before it is kept.

use std::fs;
use std::path::Path;

use object::{Architecture, Object};

use super::error::SourceError;
use crate::guest::modules::{Modules, release_of};
use crate::guest::{GuestError, Kernel, MODULES, Series, bzimage, pace};

/// Where the kernel describes its types.
const BTF: &str = ".BTF";

/// The kernel of a directory with `vmlinuz` and `modules/`, if it is of this series and a guest can run on it. `at` names
/// its source, and `file` the kernel in that.
///
/// # Errors
/// [`SourceError`] with what it lacks; [`GuestError::Module`]; [`GuestError::Clock`].
pub(super) fn kernel(directory: &Path, series: &Series, at: &str, file: &str) -> Result<Kernel, GuestError> {
    let at = || at.to_owned();
    let path = directory.join("vmlinuz");
    let image = fs::read(&path).map_err(GuestError::file("read", &path))?;
    let not_bootable = || SourceError::NotBootable { at: at(), file: file.to_owned() };
    let release = bzimage::release(&image).ok_or_else(not_bootable)?;
    if !series.has(&release) {
        let series = series.series.clone();
        return Err(SourceError::OtherSeries { at: at(), series, release }.into());
    }
    let mut vmlinux = match bzimage::vmlinux(&image, &path) {
        Err(GuestError::Incomplete { .. }) => return Err(not_bootable().into()),
        vmlinux => vmlinux?,
    };
    let elf = object::File::parse(vmlinux.as_slice()).map_err(|_| not_bootable())?;
    if elf.architecture() != Architecture::X86_64 {
        return Err(not_bootable().into());
    }
    if elf.section_by_name(BTF).is_none() {
        return Err(SourceError::NoBtf { at: at(), release }.into());
    }
    pace::quicken(&mut vmlinux, &release)?;
    let kernel = Kernel::read(directory, &series.processor)?;
    for module in Modules::of(&kernel)?.load_order(&MODULES)? {
        if let Some(modules) = release_of(&module.content).filter(|modules| *modules != release) {
            return Err(SourceError::OtherModules { at: at(), release, modules }.into());
        }
    }
    Ok(kernel)
}
