//! The clang that makes BPF objects, and how it is called: when this library is built, and for an algorithm from outside the
//! tree.

use std::env;
use std::process::Command;

/// Oldest clang whose BPF output is accepted by the oldest kernel supported.
const CLANG_MINIMUM: u32 = 16;
/// Tried in this order unless CLANG names one.
const CLANG_NAMES: [&str; 7] =
    ["clang-19", "clang-20", "clang-21", "clang-18", "clang-17", "clang-16", "clang"];

/// For code without types of the kernel: the host's part of an algorithm from outside the tree.
pub(crate) const PURE: [&str; 7] = ["-target", "bpf", "-mcpu=v3", "-O2", "-std=gnu11", "-Wall", "-Wextra"];

/// A call of clang for the kernel's programs on this architecture; includes, input and output are to follow.
pub(crate) fn command(clang: &str, arch: &str) -> Command {
    let mut command = Command::new(clang);
    command.args(PURE).args(["-g", "-Wno-unused-parameter"]).arg(format!("-D__TARGET_ARCH_{arch}"));
    command
}

/// libbpf's name of an architecture, as Rust has it; `None`: there are no objects for it.
pub(crate) fn architecture(name: &str) -> Option<&'static str> {
    match name {
        "x86_64" => Some("x86"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

/// Its name, or what to install.
pub(crate) fn find_clang() -> Result<String, String> {
    let named = env::var("CLANG").ok();
    let names = named.as_deref().map_or_else(|| CLANG_NAMES.to_vec(), |name| vec![name]);
    let mut oldest = None;
    for name in names {
        match clang_major(name) {
            Some(major) if major >= CLANG_MINIMUM => return Ok(name.to_owned()),
            Some(major) => oldest = Some(format!("{name} is version {major}")),
            None => {}
        }
    }
    let found = oldest.unwrap_or_else(|| match named {
        Some(name) => format!("CLANG={name} does not run"),
        None => "none was found".to_owned(),
    });
    Err(format!(
        "making BPF objects needs clang {CLANG_MINIMUM} or newer, but {found}: install clang-19 or set CLANG"
    ))
}

/// For instance `19.1.7`, without what a distribution adds to it.
pub(crate) fn clang_version(name: &str) -> Option<String> {
    let output = Command::new(name).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (_, version) = text.split_once("clang version ")?;
    Some(version.chars().take_while(|sign| sign.is_ascii_digit() || *sign == '.').collect())
}

fn clang_major(name: &str) -> Option<u32> {
    clang_version(name)?.split('.').next()?.parse().ok()
}
