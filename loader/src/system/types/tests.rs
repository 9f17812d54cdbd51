//! Types that are written by hand, and what libbpf makes of their excerpts.

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfKind, BtfType};
use libbpf_sys::{
    BTF_KIND_ARRAY, BTF_KIND_ENUM, BTF_KIND_FUNC, BTF_KIND_FUNC_PROTO, BTF_KIND_INT, BTF_KIND_TYPEDEF,
};
use onramp_mutation::check;

use super::*;

/// BTF that is written by hand.
struct Written {
    /// What the types and names before its own take.
    before: (u32, u32),
    types: Vec<u32>,
    count: u32,
    strings: Vec<u8>,
}

impl Written {
    /// Its ids begin behind so many others, and its names behind so many bytes.
    fn behind(types: u32, bytes: u32) -> Self {
        Self { before: (types, bytes), types: Vec::new(), count: 0, strings: vec![0] }
    }

    fn string(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let offset = self.before.1 + self.strings.len() as u32;
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        offset
    }

    /// Adds a type, and returns its id. `last`: its size or the type that it refers to.
    fn add(&mut self, kind: u32, name: &str, last: u32, count: u32, tail: &[u32]) -> u32 {
        let name = self.string(name);
        self.types.extend([name, kind << 24 | count, last]);
        self.types.extend(tail);
        self.count += 1;
        self.before.0 + self.count
    }

    /// Members: name, type, offset in bits.
    fn structure(&mut self, name: &str, size: u32, members: &[(&str, u32, u32)]) -> u32 {
        let tail: Vec<u32> =
            members.iter().flat_map(|(name, of, bits)| [self.string(name), *of, *bits]).collect();
        self.add(BTF_KIND_STRUCT, name, size, members.len() as u32, &tail)
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, names) = (4 * self.types.len() as u32, self.strings.len() as u32);
        let head = [0x1_eb9f, HEADER, 0, types, types, names];
        let words = head.iter().chain(&self.types).flat_map(|word| word.to_ne_bytes());
        words.chain(self.strings.iter().copied()).collect()
    }
}

/// A socket as the kernel might have it: with a part by value, one without a name, and others behind pointers.
fn kernel() -> Written {
    let mut kernel = Written::behind(0, 0);
    let int = kernel.add(BTF_KIND_INT, "int", 4, 0, &[32]);
    let array = kernel.add(BTF_KIND_ARRAY, "", 0, 0, &[int, int, 4]);
    let common = kernel.structure("sock_common", 20, &[("skc_family", int, 0), ("skc_rcv", array, 32)]);
    let page = kernel.structure("page", 64, &[("flags", int, 0), ("other", common, 32)]);
    let to_page = kernel.add(BTF_KIND_PTR, "", page, 0, &[]);
    let alias = kernel.add(BTF_KIND_TYPEDEF, "page_pointer", to_page, 0, &[]);
    let unnamed = kernel.structure("", 8, &[("sk_page", alias, 0)]);
    let sock = kernel.structure("sock", 32, &[("__sk_common", common, 0), ("", unnamed, 192)]);
    let to_sock = kernel.add(BTF_KIND_PTR, "", sock, 0, &[]);
    let first = [kernel.string("sk"), to_sock];
    let call = kernel.add(BTF_KIND_FUNC_PROTO, "", int, 1, &first);
    kernel.add(BTF_KIND_FUNC, "tcp_init", call, 1, &[]);
    let to_call = kernel.add(BTF_KIND_PTR, "", call, 0, &[]);
    kernel.structure("tcp_ops", 8, &[("init", to_call, 0)]);
    kernel.structure("unused", 4, &[("of", int, 0)]);
    let values = [kernel.string("OPEN"), 1];
    kernel.add(BTF_KIND_ENUM, "state", 4, 1, &values);
    kernel
}

fn read(bytes: &[u8]) -> Types {
    let mut types = Types::default();
    types.add(bytes.to_vec()).unwrap();
    types
}

/// An excerpt as libbpf reads it.
fn libbpf(bytes: &[u8]) -> Btf<'static> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Btf::from_path(file.path()).unwrap()
}

#[test]
fn types_and_functions_are_found_by_their_whole_names() {
    let types = read(&kernel().bytes());
    for name in ["int", "sock", "sock_common", "page_pointer", "tcp_init", "tcp_ops", "state"] {
        assert!(types.has(name), "{name}");
    }
    for name in ["", "soc", "sock_", "sock_common_", "tcp_initial", "skc_family", "void"] {
        assert!(!types.has(name), "{name}");
    }
    assert!(!Types::default().has("sock"));
}

#[test]
fn a_structs_members_and_size_are_reported_and_those_of_nothing_else() {
    let types = read(&kernel().bytes());
    assert_eq!(types.members("sock_common"), ["skc_family", "skc_rcv"]);
    assert_eq!(types.size("sock_common"), Some(20));
    for name in ["int", "page_pointer", "tcp_init", "state", "missing"] {
        assert_eq!((types.members(name), types.size(name)), (Vec::new(), None), "{name}");
    }
}

#[test]
fn a_modules_types_go_on_where_the_kernels_end() {
    let kernel = kernel();
    let mut module = Written::behind(kernel.count, kernel.strings.len() as u32);
    let own = module.structure("bw", 4, &[("v", 1, 0)]);
    module.structure("bbr", 8, &[("min_rtt_us", 1, 0), ("bw", own, 32)]);
    let mut types = read(&kernel.bytes());
    types.add(module.bytes()).unwrap();
    assert!(types.has("sock") && types.has("bbr"));
    assert_eq!(types.members("bbr"), ["min_rtt_us", "bw"]);
    let excerpt = read(&types.excerpt(["bbr"]));
    assert!(excerpt.has("int") && excerpt.has("bw") && !excerpt.has("sock"));
}

#[test]
fn what_is_no_btf_is_refused_and_nothing_of_it_is_added() {
    let valid = kernel().bytes();
    let mut types = read(&valid);
    let mut refused = |bytes: &[u8], why: &str| {
        let error = types.add(bytes.to_vec()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidData, why));
        assert_eq!(
            (types.members("sock"), types.starts.len()),
            (vec!["__sk_common".into(), String::new()], 15)
        );
    };
    refused(b"", "it does not begin as BTF of version 1 does");
    refused(b"\x7fELF", "it does not begin as BTF of version 1 does");
    refused(&valid[..valid.len() - 1], "its names are cut off");
    refused(&valid[..40], "its types are cut off");
    refused(&valid[..12], "its types are cut off");
    let mut unknown = valid.clone();
    unknown[24 + 7] = 31;
    refused(&unknown, "a type is of a kind that is not known");
    let mut long = Written::behind(0, 0);
    long.add(BTF_KIND_STRUCT, "sock", 8, 3, &[0; 6]);
    refused(&long.bytes(), "a type is cut off");
}

#[test]
fn an_excerpt_has_what_is_there_by_value_and_of_a_struct_behind_a_pointer_its_name() {
    let types = read(&kernel().bytes());
    let excerpt = types.excerpt(["sock", "state", "missing"]);
    let btf = libbpf(&excerpt);
    let sock: Struct<'_> = btf.type_by_name("sock").unwrap();
    let members: Vec<_> = sock.iter().map(|member| (member.name, member.attr)).collect();
    assert!(matches!(members[..], [
        (Some(name), MemberAttr::Normal { offset: 0 }),
        (None, MemberAttr::Normal { offset: 192 })
    ] if name == "__sk_common"));
    let common: Struct<'_> = btf.type_by_name("sock_common").unwrap();
    assert_eq!(common.iter().count(), 2);
    let page: Struct<'_> = btf.type_by_name("page").unwrap();
    assert_eq!((page.iter().count(), excerpt.len() < kernel().bytes().len()), (0, true));
    let kinds: Vec<_> =
        (1..btf.len() as u32).map(|id| btf.type_by_id::<BtfType<'_>>(id.into()).unwrap().kind()).collect();
    assert_eq!(
        kinds,
        [
            BtfKind::Int,
            BtfKind::Array,
            BtfKind::Struct,
            BtfKind::Struct,
            BtfKind::Ptr,
            BtfKind::Typedef,
            BtfKind::Struct,
            BtfKind::Struct,
            BtfKind::Enum
        ]
    );
}

#[test]
fn a_struct_that_is_asked_for_is_whole_although_it_is_behind_a_pointer_too() {
    let types = read(&kernel().bytes());
    for names in [["tcp_ops", "sock"], ["sock", "tcp_ops"]] {
        let excerpt = read(&types.excerpt(names));
        assert_eq!(excerpt.members("sock"), ["__sk_common", ""]);
    }
    let excerpt = read(&types.excerpt(["tcp_ops"]));
    assert!(excerpt.has("sock") && excerpt.members("sock").is_empty());
    // Arguments of functions are there: types are compared by them (bpf_core_type_matches).
    assert!(
        libbpf(&types.excerpt(["tcp_ops"])).type_by_kind::<libbpf_rs::btf::types::FuncProto<'_>>().count()
            == 1
    );
}

#[test]
fn an_excerpt_of_nothing_is_btf_without_types() {
    assert!(libbpf(&Types::default().excerpt(["sock"])).len() <= 1);
}

#[test]
fn btf_that_was_changed_at_random_is_refused_or_gives_a_sound_excerpt() {
    check(1, 20_000, onramp_mutation::bytes(vec![kernel().bytes()]), |bytes| {
        let mut types = Types::default();
        if types.add(bytes).is_ok() {
            let names = ["sock", "tcp_ops", "tcp_init", "state"];
            for name in names {
                types.members(name);
                types.size(name);
            }
            read(&types.excerpt(names));
        }
        Ok(())
    });
}

#[test]
fn no_object_asks_for_the_id_of_a_type_of_the_kernel() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../bpf");
    let sources =
        [directory.clone(), directory.join("kernel")].map(|directory| std::fs::read_dir(directory).unwrap());
    let mut seen = 0;
    for source in sources.into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if source.is_file() {
            let text = std::fs::read_to_string(&source).unwrap();
            assert!(!text.contains("bpf_core_type_id_kernel"), "{}", source.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} sources");
}
