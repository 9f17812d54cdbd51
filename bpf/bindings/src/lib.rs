//! Rust for the C headers of `bpf/`, which are the one source of every layout and number that crosses. For build
//! scripts alone.
//!
//! A structure or enumeration has its name in Rust's style (`exit_record` is `ExitRecord`), fields keep theirs, and
//! comments become documentation. An enumeration is a module of numbers without their common first word (`EXIT_LOSS` of
//! `exit_reason` is `exit_reason::LOSS`), because what comes from the kernel may be a number that has no name here.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bindgen::callbacks::{
    DeriveTrait, EnumVariantValue, ImplementsTrait, IntKind, ItemInfo, ItemKind, ParseCallbacks,
};
use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};
use onramp_records::{Records, camel};

/// What to make of a header.
#[derive(Clone, Copy, Debug)]
pub struct Bindings<'a> {
    /// The header.
    pub header: &'a str,
    /// Names of the files whose declarations are wanted; what others declare is taken to be in scope.
    pub files: &'a [&'a str],
    /// Structures and constants of other files that are wanted, too.
    pub others: &'a [&'a str],
    /// Structures that are left out.
    pub without: &'a [&'a str],
    /// For memory that is shared: every integer is an atomic.
    pub atomic: bool,
    /// What documents the fields that rows make.
    pub records: Option<&'a Records>,
}

impl Bindings<'_> {
    /// Writes them to `target`, which a source includes.
    ///
    /// # Errors
    /// A sentence saying what libclang or the header lacks.
    pub fn write(self, target: &Path) -> Result<(), String> {
        let shared = self.atomic;
        let mut builder = Builder::default()
            .header(self.header)
            .clang_args(["-std=gnu11", "-fparse-all-comments"])
            .clang_args(if shared { &[] } else { STANDARD })
            .allowlist_recursively(false)
            .ignore_functions()
            .default_enum_style(EnumVariation::ModuleConsts)
            .derive_default(true)
            // A row of pointers has none that means anything.
            .no_default(".*_row")
            .derive_copy(!shared)
            .derive_eq(!shared)
            .derive_partialeq(!shared)
            .rust_target(RustTarget::stable(90, 0).map_err(|error| error.to_string())?)
            .rust_edition(RustEdition::Edition2024)
            .explicit_padding(true)
            .use_core()
            .disable_header_comment()
            .formatter(Formatter::None)
            .parse_callbacks(Box::new(Names { enumerations: RefCell::default() }));
        for file in self.files {
            builder = builder.allowlist_file(format!("(.*/)?{}", file.replace('.', r"\.")));
        }
        for name in self.without {
            builder = builder.blocklist_type(name);
        }
        for name in self.others {
            builder = builder.allowlist_item(name);
        }
        let bindings = builder.generate().map_err(|error| {
            format!("bindings of {} (by libclang, which comes with clang): {error}", self.header)
        })?;
        let text = bindings.to_string();
        // What crosses is copied byte by byte, and padding has no defined value.
        if let Some((before, _)) = text.split_once(PADDING) {
            let structure = before.rsplit("pub struct ").next().and_then(|rest| rest.split(' ').next());
            return Err(format!(
                "{}: {} has padding: name it as a field",
                self.header,
                structure.unwrap_or_default()
            ));
        }
        let text = match self.records {
            Some(records) => records.document(&text),
            None => text,
        };
        fs::write(target, text).map_err(|error| format!("cannot write {}: {error}", target.display()))
    }
}

/// What bindgen calls padding.
const PADDING: &str = "__bindgen_padding";

/// The headers' integers by the names that bindgen knows as Rust's. Without this they stay types of their own, and are
/// named as the atomics.
const STANDARD: &[&str] =
    &["-Du8=uint8_t", "-Du16=uint16_t", "-Du32=uint32_t", "-Du64=uint64_t", "-Ds32=int32_t", "-Ds64=int64_t"];

#[derive(Debug)]
struct Names {
    /// Seen so far; all are parsed before anything is named.
    enumerations: RefCell<BTreeSet<String>>,
}

impl ParseCallbacks for Names {
    fn item_name(&self, item: ItemInfo<'_>) -> Option<String> {
        let module = self.enumerations.borrow().contains(item.name);
        if module || !matches!(item.kind, ItemKind::Type) {
            return None;
        }
        Some(match item.name {
            "u8" | "u16" | "u32" | "u64" => format!("Atomic{}", item.name.to_uppercase()),
            name => camel(name),
        })
    }

    fn enum_variant_name(&self, of: Option<&str>, name: &str, _: EnumVariantValue) -> Option<String> {
        let of = of.unwrap_or_default().trim_start_matches("enum ");
        self.enumerations.borrow_mut().insert(of.to_owned());
        name.split_once('_').map(|(_, rest)| rest.to_owned())
    }

    fn blocklisted_type_implements_trait(&self, _: &str, _: DeriveTrait) -> Option<ImplementsTrait> {
        Some(ImplementsTrait::Yes)
    }

    fn int_macro(&self, name: &str, _: i64) -> Option<IntKind> {
        // Lengths of arrays, and what is counted by them.
        let length = name.ends_with("_MAX");
        Some(if length { IntKind::Custom { name: "usize", is_signed: false } } else { IntKind::U32 })
    }
}
