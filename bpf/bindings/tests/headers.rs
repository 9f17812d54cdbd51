//! What Rust comes of a header.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use onramp_bindings::Bindings;
use tempfile::tempdir;

const BASE: &str = "#include <stdint.h>\ntypedef uint32_t u32;\ntypedef uint64_t u64;\n#define ROW_MAX 3\n";

fn rust_of(declarations: &str, structures: &[&str], atomic: bool) -> Result<String, String> {
    let home = tempdir().unwrap();
    let (header, target) = (home.path().join("some.h"), home.path().join("some.rs"));
    fs::write(&header, format!("{BASE}{declarations}")).unwrap();
    let files: &[&str] = if structures.is_empty() { &["some.h"] } else { &[] };
    Bindings {
        header: header.to_str().unwrap(),
        files,
        others: structures,
        without: &[],
        atomic,
        records: None,
    }
    .write(&target)?;
    Ok(fs::read_to_string(target).unwrap().replace(' ', ""))
}

#[test]
fn structures_enumerations_lengths_and_comments_have_their_names_in_rust() {
    let text = rust_of(
        "enum exit_reason { EXIT_NONE = 0, EXIT_LOSS = 2 };\n/* How. */\nstruct exit_record { u64 at; /* when */ u32 of[ROW_MAX]; u32 unused; };\n",
        &[],
        false,
    )
    .unwrap();
    for expected in [
        "pubmodexit_reason{",
        "pubconstLOSS:Type=2;",
        "#[doc=\"How.\"]",
        "pubstructExitRecord{",
        "#[doc=\"when\"]pubat:u64,",
        "pubof:[u32;3usize],",
        "pubconstROW_MAX:usize=3;",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[test]
fn what_is_shared_is_atomic() {
    let text =
        rust_of("struct slot { u64 id; u32 names[2]; };\nstruct other { u64 id; };\n", &["slot"], true)
            .unwrap();
    assert!(text.contains("pubid:AtomicU64,") && text.contains("pubnames:[AtomicU32;2usize],"), "{text}");
    assert!(!text.contains("Other"), "{text}");
}

#[test]
fn padding_is_refused() {
    let refused = rust_of("struct row { u32 first; u64 second; };\n", &[], false).unwrap_err();
    assert!(refused.contains("some.h: Row"), "{refused}");
}
