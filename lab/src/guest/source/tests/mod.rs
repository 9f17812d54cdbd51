// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Every kind of source, and all that may be wrong with one: what is refused leaves the cache as it was.

mod example;
mod server;

use std::collections::BTreeSet;
use std::fs;

use ::tar::EntryType;
use example::{Files, RELEASE, append, deb, good, image_of, kernel, package, sha256, tar, write};
use tempfile::TempDir;

use super::*;
use crate::guest::bzimage::tests::piped;

/// A cache for 6.12, and a place for sources.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("kernels/6.12")
    }

    /// A file with this content.
    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A directory with these files.
    fn directory(&self, name: &str, files: &Files) -> String {
        let path = self.directory.path().join(name);
        write(files, &path);
        path.to_str().unwrap().to_owned()
    }

    fn keep(&self, source: &str, sha256: Option<&str>) -> Result<Kernel, GuestError> {
        let series = Series::find("6.12").unwrap();
        let digest = sha256.map(|text| text.parse::<Sha256Digest>()).transpose()?;
        keep(series, &self.home(), &source.parse()?, digest.as_ref())?;
        Kernel::read(&self.home().join("current"), &series.processor)
    }

    /// What is there, less the lock.
    fn kept(&self) -> BTreeSet<String> {
        let Ok(entries) = fs::read_dir(self.home()) else { return BTreeSet::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "lock").collect()
    }

    /// Why a source is refused. Nothing is kept or left.
    fn refused(&self, source: &str, sha256: Option<&str>) -> SourceError {
        let error = self.keep(source, sha256).expect_err(source);
        assert_eq!(self.kept(), BTreeSet::new(), "{source}");
        match error {
            GuestError::Source(error) => error,
            error => panic!("{source}: {error}"),
        }
    }
}

/// Makes a source at a place: its name, and the digest that it is fetched with.
type Made<'a> = Box<dyn FnOnce(&Place) -> (String, Option<String>) + 'a>;

/// That a source brings the good kernel, alone; the name under which it is kept.
fn brings(source: Made<'_>) -> String {
    let place = Place::new();
    let (source, digest) = source(&place);
    let found = place.keep(&source, digest.as_deref()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.release, RELEASE);
    let kept = place.kept();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let names: BTreeSet<_> =
        fs::read_dir(place.home().join("current")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["modules", "vmlinuz"]);
    kept.into_iter().find(|name| name != "current").unwrap()
}

#[test]
fn every_kind_of_source_brings_the_same_kernel() {
    let packed = tar(&good());
    let [gzip, xz, zstd] = ["gzip", "xz", "zstd"].map(|program| piped(program, "-c", &packed));
    let (kernel_only, modules_only): (Files, Files) =
        good().into_iter().partition(|(name, _)| name.contains("vmlinuz"));
    let image = image_of(&[(&tar(&modules_only), None), (&piped("gzip", "-c", &tar(&kernel_only)), None)]);
    let by_oras = image_of(&[(&kernel(RELEASE), Some("vmlinuz")), (&gzip, Some("modules"))]);
    let url = server::serve([("a/k.tar.xz".into(), xz.clone())].into());
    let digest = sha256(&xz);
    let sources: Vec<Made<'_>> = vec![
        Box::new(|place| (place.directory("tree", &good()), None)),
        Box::new(|place| (place.file("k.tar", &packed), None)),
        Box::new(|place| {
            (place.file("k.tar.gz", &gzip), Some(format!("sha256:{}", sha256(&gzip).to_uppercase())))
        }),
        Box::new(|place| (place.file("k.tar.zst", &zstd), Some(sha256(&zstd)))),
        Box::new(|place| (place.file("k.deb", &deb(&xz, "data.tar.xz")), None)),
        Box::new(|place| (place.file("plain.deb", &deb(&packed, "data.tar")), None)),
        Box::new(|place| (place.directory("image", &image), None)),
        Box::new(|place| (place.file("image.tar", &tar(&image)), None)),
        Box::new(|place| (place.directory("oras", &by_oras), None)),
        Box::new(|_| (format!("{url}/a/k.tar.xz"), Some(digest.clone()))),
        Box::new(|_| (format!("{url}/moved/a/k.tar.xz"), Some(digest.clone()))),
    ];
    let kept: BTreeSet<_> = sources.into_iter().map(brings).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[test]
fn a_directory_of_the_cache_is_a_source_and_a_newer_kernel_takes_its_place() {
    let place = Place::new();
    let first = place.directory("first", &good());
    place.keep(&first, None).unwrap();
    let second = Place::new();
    // As it is, with the link to the one in use and one that is not.
    write(&package("6.12.6-old", "6.12.6-old"), &place.home().join("unused"));
    let other = second.keep(place.home().to_str().unwrap(), None).unwrap();
    assert_eq!(other.release, RELEASE);
    let newer = place.directory("newer", &package("6.12.8-mine", "6.12.8-mine"));
    assert_eq!(second.keep(&newer, None).unwrap().release, "6.12.8-mine");
    // The same again is no other one.
    assert_eq!(second.keep(place.home().to_str().unwrap(), None).unwrap().release, RELEASE);
    assert_eq!(second.kept().len(), 3);
}

#[test]
fn what_a_refused_source_would_have_replaced_stays_in_use() {
    let place = Place::new();
    place.keep(&place.directory("good", &good()), None).unwrap();
    let before = place.kept();
    // What a killed one has left is removed by the next.
    write(&good(), &place.home().join("staging/tree"));
    let bad = place.directory("bad", &package("6.1.5-mine", "6.1.5-mine"));
    assert!(matches!(place.keep(&bad, None), Err(GuestError::Source(SourceError::OtherSeries { .. }))));
    assert_eq!(place.kept(), before);
    assert_eq!(fs::read(place.home().join("current/vmlinuz")).unwrap(), kernel(RELEASE));
}

#[test]
fn a_kernel_that_no_guest_would_run_is_refused_with_what_it_lacks() {
    let refused = |files: &Files| {
        let place = Place::new();
        place.refused(&place.directory("source", files), None)
    };
    let without = |what: &str| good().into_iter().filter(|(name, _)| !name.contains(what)).collect::<Files>();
    let with = |name: &str, content: Vec<u8>| {
        let mut files = good();
        files.insert(name.into(), content);
        files
    };
    let boot = format!("./boot/vmlinuz-{RELEASE}");
    assert!(matches!(refused(&without("vmlinuz")), SourceError::NoKernel { .. }));
    assert!(matches!(refused(&without("modules.builtin")), SourceError::NoModules { .. }));
    let error = refused(&package("6.1.90-mine", "6.1.90-mine"));
    let SourceError::OtherSeries { series, release, .. } = error else { panic!("{error}") };
    assert_eq!((series.as_str(), release.as_str()), ("6.12", "6.1.90-mine"));
    // 6.120 is no 6.12.
    assert!(matches!(refused(&package("6.120.1", "6.120.1")), SourceError::OtherSeries { .. }));
    let error = refused(&package(RELEASE, "6.12.9-other"));
    let SourceError::OtherModules { release, modules, .. } = error else { panic!("{error}") };
    assert_eq!((release.as_str(), modules.as_str()), (RELEASE, "6.12.9-other"));
    assert!(matches!(refused(&with(&boot, example::kernel_without_btf())), SourceError::NoBtf { .. }));
    for not_bootable in [b"text".to_vec(), b"\x7fELF".to_vec(), kernel(RELEASE)[..0xa10].to_vec()] {
        let error = refused(&with(&boot, not_bootable));
        let SourceError::NotBootable { file, .. } = error else { panic!("{error}") };
        assert!(boot.ends_with(&file), "{file}");
    }
    let error = refused(&with("./boot/vmlinuz-6.12.8", kernel("6.12.8")));
    let SourceError::Several { what: "kernels", found, .. } = error else { panic!("{error}") };
    assert_eq!(found.len(), 2);
    let error = refused(&with("./lib/modules/6.12.8/modules.builtin", Vec::new()));
    assert!(matches!(error, SourceError::Several { what: "directories of modules", .. }), "{error}");
    // A second copy is no second kernel.
    let place = Place::new();
    place.keep(&place.directory("twice", &with("./usr/lib/vmlinuz", kernel(RELEASE))), None).unwrap();
    let place = Place::new();
    let error = place.keep(&place.directory("source", &without("tcp_bbr.ko")), None).unwrap_err();
    let GuestError::Module { name, release } = error else { panic!("{error}") };
    assert_eq!((name.as_str(), release.as_str()), ("tcp_bbr", RELEASE));
    assert_eq!(place.kept(), BTreeSet::new());
}

#[test]
fn another_file_than_the_digest_says_is_not_unpacked() {
    let place = Place::new();
    let packed = tar(&good());
    let file = place.file("k.tar", &packed);
    let url = server::serve([("k.tar".into(), packed.clone())].into());
    let image = image_of(&[(&packed, None)]);
    let manifest = |image: &Files| {
        let index: serde_json::Value = serde_json::from_slice(&image["index.json"]).unwrap();
        index["manifests"][0]["digest"].as_str().unwrap().to_owned()
    };
    let directory = place.directory("image", &image);
    let wrong = "0".repeat(64);
    for (source, found) in [
        (file.as_str(), sha256(&packed)),
        (&format!("{url}/k.tar"), sha256(&packed)),
        (&directory, manifest(&image)["sha256:".len()..].to_owned()),
    ] {
        let error = place.refused(source, Some(&wrong));
        let SourceError::Digest { expected, found: is, .. } = error else { panic!("{error}") };
        assert_eq!((&expected, is), (&wrong, found));
    }
    place.keep(&directory, Some(&manifest(&image))).unwrap();
}

#[test]
fn a_command_line_that_cannot_be_right_is_wrong_usage() {
    let place = Place::new();
    let good = place.directory("good", &good());
    let url = "http://127.0.0.1:9/k.tar";
    for (source, digest) in [
        (url, None),
        ("ftp://127.0.0.1/k.tar", Some("0".repeat(64))),
        ("docker://example.org/kernel:6.12", None),
        ("oci:nowhere", None),
        (good.as_str(), Some("0".repeat(64))),
        (url, Some("0".repeat(63))),
        (url, Some("g".repeat(64))),
    ] {
        assert!(place.refused(source, digest.as_deref()).is_usage(), "{source}");
    }
    assert!(matches!(place.refused(url, None), SourceError::NoDigest { at } if at == url));
    let error = place.refused("FTP://x", None);
    assert!(matches!(&error, SourceError::Scheme { scheme, .. } if scheme == "ftp"), "{error}");
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    let error = place.refused("/nowhere/k.tar", None);
    assert!(matches!(&error, SourceError::NotThere { at } if at == "/nowhere/k.tar"), "{error}");
    assert!(!place.home().exists());
    let url = server::serve(Files::new());
    for (path, said) in [("none", "404"), ("cut", "transfer closed")] {
        let error = place.refused(&format!("{url}/{path}"), Some(&"0".repeat(64)));
        let SourceError::Download { at, message } = &error else { panic!("{error}") };
        assert!(at.ends_with(path) && message.contains(said), "{error}");
    }
    // Nothing listens there any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = place.refused(&format!("http://{closed}/k"), Some(&"0".repeat(64)));
    assert!(matches!(error, SourceError::Download { .. }), "{error}");
}

#[test]
fn an_archive_that_is_cut_short_is_refused_wherever_it_was_cut() {
    let packed = tar(&good());
    let [gzip, xz] = ["gzip", "xz"].map(|program| piped(program, "-c", &packed));
    let package = deb(&packed, "data.tar");
    let place = Place::new();
    // The end of a tar archive is two blocks of zeros.
    for (bytes, end) in [(&packed, 1024), (&gzip, 4), (&xz, 4), (&package, 1024)] {
        for length in [bytes.len() - end, bytes.len() * 3 / 4, bytes.len() / 2, 300.min(bytes.len() / 4)] {
            let file = place.file("cut", &bytes[..length]);
            let error = place.refused(&file, None);
            assert!(matches!(error, SourceError::Damaged { .. }), "{length} of {}: {error}", bytes.len());
        }
    }
    for (name, bytes) in [("text", &b"no archive"[..]), ("empty", b""), ("vmlinuz", &kernel(RELEASE))] {
        let error = place.refused(&place.file(name, bytes), None);
        assert!(matches!(error, SourceError::NoArchive { .. }), "{name}: {error}");
    }
    let other = place.refused(&place.file("other.deb", &deb(&packed, "control.tar")), None);
    assert!(matches!(other, SourceError::Damaged { .. }), "{other}");
}

#[test]
fn a_member_that_would_be_outside_is_refused_and_links_are_not_followed() {
    let place = Place::new();
    let outside = place.directory.path().join("outside.ko");
    for name in ["../../../outside.ko", "lib/../../../../outside.ko", outside.to_str().unwrap()] {
        let mut builder = ::tar::Builder::new(Vec::new());
        append(&mut builder, name, b"x", EntryType::Regular);
        let error = place.refused(&place.file("k.tar", &builder.into_inner().unwrap()), None);
        let SourceError::Outside { member, .. } = &error else { panic!("{error}") };
        assert_eq!(member, name);
        assert!(!outside.exists());
    }
    // A directory that is a link to elsewhere, and a file through it.
    let elsewhere = place.directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut builder = ::tar::Builder::new(Vec::new());
    let mut header = ::tar::Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "link", &elsewhere).unwrap();
    append(&mut builder, "link/tcp_bbr.ko", b"x", EntryType::Regular);
    let error = place.refused(&place.file("link.tar", &builder.into_inner().unwrap()), None);
    assert!(matches!(error, SourceError::NoKernel { .. }), "{error}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    let mut builder = ::tar::Builder::new(Vec::new());
    append(&mut builder, "boot/vmlinuz", b"", EntryType::Link);
    let error = place.refused(&place.file("hard.tar", &builder.into_inner().unwrap()), None);
    assert!(matches!(error, SourceError::HardLink { .. }), "{error}");
}

#[test]
fn an_image_whose_parts_are_not_what_their_digests_say_is_refused() {
    let packed = tar(&good());
    let whole = image_of(&[(&packed, None)]);
    let refused = |files: &Files| {
        let place = Place::new();
        place.refused(&place.directory("image", files), None)
    };
    for name in whole.keys().filter(|name| name.starts_with("blobs/")) {
        let mut changed = whole.clone();
        changed.get_mut(name).unwrap().push(b' ');
        let error = refused(&changed);
        assert!(matches!(&error, SourceError::Digest { at, .. } if at.ends_with(name)), "{error}");
        let mut missing = whole.clone();
        missing.remove(name);
        assert!(matches!(refused(&missing), SourceError::Image { .. }));
    }
    let index = |text: &str| {
        let mut changed = whole.clone();
        changed.insert("index.json".into(), text.into());
        refused(&changed)
    };
    for text in [
        "no JSON",
        r#"{"manifests":[]}"#,
        r#"{"manifests":[{"digest":"sha256:0"},{"digest":"sha256:1"}]}"#,
        r#"{"manifests":[{"digest":"sha512:00"}]}"#,
        r#"{"manifests":[{"digest":"sha256:../../../k.tar"}]}"#,
        r#"{"manifests":[{"digest":"sha256:0","platform":{"architecture":"s390x","os":"linux"}}]}"#,
    ] {
        let error = index(text);
        assert!(matches!(error, SourceError::Image { .. }), "{text}: {error}");
    }
    // A layer that takes something away.
    let gone: Files = [(format!("boot/.wh.vmlinuz-{RELEASE}"), Vec::new())].into();
    let error = refused(&image_of(&[(&packed, None), (&tar(&gone), None)]));
    assert!(matches!(error, SourceError::Image { .. }), "{error}");
    // `docker save` writes no OCI image.
    let place = Place::new();
    let docker = place.file("docker.tar", &tar(&[("manifest.json".into(), b"[]".to_vec())].into()));
    assert!(matches!(place.refused(&docker, None), SourceError::Image { .. }));
}

#[test]
fn bytes_changed_anywhere_bring_a_kernel_of_the_series_or_nothing() {
    let packed = tar(&good());
    let image = image_of(&[(&piped("gzip", "-c", &packed), None)]);
    let index = String::from_utf8(image["index.json"].clone()).unwrap();
    let valid = vec![packed.clone(), deb(&packed, "data.tar"), piped("xz", "-c", &packed), tar(&image)];
    let check = |place: &Place, source: &str| {
        let found = place.keep(source, None);
        if let Ok(kernel) = &found {
            assert!(kernel.release.starts_with("6.12"), "{}", kernel.release);
        }
        assert_eq!(place.kept().is_empty(), found.is_err());
        assert!(!place.home().join("staging").exists());
    };
    onramp_mutation::check(23, 300, onramp_mutation::bytes(valid), |bytes| {
        let place = Place::new();
        let source = place.file("changed", &bytes);
        check(&place, &source);
        // The source, and the cache unless it was refused before that was begun.
        assert!(fs::read_dir(place.directory.path()).unwrap().count() <= 2);
        Ok(())
    });
    onramp_mutation::check(29, 300, onramp_mutation::text(&[index]), |text| {
        let place = Place::new();
        let mut changed = image.clone();
        changed.insert("index.json".into(), text.into_bytes());
        check(&place, &place.directory("image", &changed));
        Ok(())
    });
}
