// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A kernel that no machine boots, but that has all that is looked at, and the archives that it may be in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::guest::MODULES;
use crate::guest::bzimage::tests::{image, piped};

pub const RELEASE: &str = "6.12.7-mine";

/// Files by their paths, in their order.
pub type Files = BTreeMap<String, Vec<u8>>;

/// An ELF file of x86-64 with the code that is looked for in a kernel, and a section of this name.
fn elf(section: &str) -> Vec<u8> {
    // movabs of 10^15, by which the driver of the HPET divides.
    let code = [&[0x48, 0xb8][..], &1_000_000_000_000_000_u64.to_le_bytes(), &[0x90; 6]].concat();
    let names = format!("\0{section}\0.shstrtab\0");
    let sections =
        [(0_u32, 0_u32, 0..0), (1, 1, 64..80), (section.len() as u32 + 2, 3, 80..80 + names.len())];
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    // An executable of x86-64; entry, program headers, section headers.
    elf.extend([&2_u16.to_le_bytes()[..], &62_u16.to_le_bytes(), &1_u32.to_le_bytes()].concat());
    for word in [0_u64, 0, 80 + names.len() as u64] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 0, 64, sections.len() as u16, 2] {
        elf.extend(half.to_le_bytes());
    }
    elf.extend(&code);
    elf.extend(names.bytes());
    for (name, kind, range) in sections {
        elf.extend([name, kind].map(u32::to_le_bytes).concat());
        for word in [0, 0, range.start as u64, range.len() as u64, 0, 1, 0] {
            elf.extend(word.to_le_bytes());
        }
        // Link and information are halves of one word: 0.
    }
    elf
}

/// `vmlinuz` of a release.
pub fn kernel(release: &str) -> Vec<u8> {
    image(release, &piped("gzip", "-c", &elf(".BTF")))
}

/// The same without a description of its types.
pub fn kernel_without_btf() -> Vec<u8> {
    image(RELEASE, &piped("gzip", "-c", &elf(".data")))
}

/// A kernel with the lab's modules, of releases, as a package has them.
pub fn package(kernel_release: &str, modules_release: &str) -> Files {
    let modules = format!("./lib/modules/{modules_release}");
    let mut files = Files::from([
        (format!("./boot/vmlinuz-{kernel_release}"), kernel(kernel_release)),
        (format!("{modules}/modules.builtin"), b"kernel/drivers/net/tun.ko\n".to_vec()),
        (format!("{modules}/modules.order"), b"".to_vec()),
    ]);
    for name in MODULES.iter().filter(|name| **name != "tun") {
        let module = format!("\x7fELF\0license=GPL\0depends=\0vermagic={modules_release} SMP mod_unload \0");
        files.insert(format!("{modules}/kernel/net/{name}.ko"), module.into_bytes());
    }
    files
}

/// The kernel that is fetched where nothing is wrong.
pub fn good() -> Files {
    package(RELEASE, RELEASE)
}

/// Files in a directory.
pub fn write(files: &Files, directory: &Path) {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A tar archive of files.
pub fn tar(files: &Files) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (name, content) in files {
        append(&mut builder, name, content, ::tar::EntryType::Regular);
    }
    builder.into_inner().unwrap()
}

/// A member of an archive, whatever its name.
pub fn append(builder: &mut ::tar::Builder<Vec<u8>>, name: &str, content: &[u8], kind: ::tar::EntryType) {
    let mut header = ::tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, content).unwrap();
}

/// A Debian package with these files.
pub fn deb(data: &[u8], name: &str) -> Vec<u8> {
    let mut package = b"!<arch>\n".to_vec();
    for (name, content) in [("debian-binary", &b"2.0\n"[..]), (name, data)] {
        package.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", content.len()).bytes(),
        );
        package.extend(content);
        package.resize(package.len().next_multiple_of(2), b'\n');
    }
    package
}

/// SHA-256, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// An OCI image with these layers, each with a title or none.
pub fn image_of(layers: &[(&[u8], Option<&str>)]) -> Files {
    let mut files = Files::from([("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec())]);
    let mut blob = |content: &[u8]| {
        files.insert(format!("blobs/sha256/{}", sha256(content)), content.to_vec());
        sha256(content)
    };
    let layers: Vec<_> = layers
        .iter()
        .map(|(content, title)| {
            let title = title.map(|title| serde_json::json!({ "org.opencontainers.image.title": title }));
            let digest = format!("sha256:{}", blob(content));
            serde_json::json!({ "digest": digest, "annotations": title.unwrap_or(serde_json::json!({})) })
        })
        .collect();
    let manifest = serde_json::json!({ "schemaVersion": 2, "layers": layers }).to_string();
    let manifest = format!("sha256:{}", blob(manifest.as_bytes()));
    let platform = serde_json::json!({ "architecture": "amd64", "os": "linux" });
    let other =
        serde_json::json!({ "digest": "sha256:0", "platform": { "architecture": "arm64", "os": "linux" } });
    let all =
        serde_json::json!({ "manifests": [other, { "digest": manifest, "platform": platform }] }).to_string();
    let kind = "application/vnd.oci.image.index.v1+json";
    let index =
        serde_json::json!({ "digest": format!("sha256:{}", blob(all.as_bytes())), "mediaType": kind });
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [index] }).to_string();
    files.insert("index.json".into(), index.into_bytes());
    files
}
