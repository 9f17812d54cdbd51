//! The kernel's type information (BTF): looked up by name, and the part of it that an object is fitted to.
//!
//! libbpf goes through all types of the kernel, a hundred thousand, for each name that it looks up and for each structure
//! of an object. Here they are gone through once, and libbpf is given an excerpt. Format: Documentation/bpf/btf.rst.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

use libbpf_sys::{
    BTF_KIND_ARRAY, BTF_KIND_CONST, BTF_KIND_DATASEC, BTF_KIND_DECL_TAG, BTF_KIND_ENUM, BTF_KIND_ENUM64,
    BTF_KIND_FLOAT, BTF_KIND_FUNC, BTF_KIND_FUNC_PROTO, BTF_KIND_FWD, BTF_KIND_INT, BTF_KIND_PTR,
    BTF_KIND_RESTRICT, BTF_KIND_STRUCT, BTF_KIND_TYPE_TAG, BTF_KIND_TYPEDEF, BTF_KIND_UNION, BTF_KIND_VAR,
    BTF_KIND_VOLATILE,
};

/// `BTF_MAGIC` and the version behind it.
const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
/// Bytes of the header.
const HEADER: u32 = 24;
/// Words at the beginning of every type: its name, its kind with the count of its elements, and its size or the type that
/// it refers to.
const HEAD: usize = 3;
/// The part of the second word that is the count.
const COUNT: u32 = 0xffff;
/// Lists of ids that names are distributed among, by as many of their first bytes.
const LISTS: usize = 1024;
const DISTINCT: usize = 4;

/// Types that were read. The first has the id 1; 0 is `void`.
#[derive(Default)]
pub(crate) struct Types {
    /// One type after the other.
    words: Vec<u32>,
    /// Where in `words` each begins.
    starts: Vec<usize>,
    /// Names, each with a NUL at its end.
    strings: Vec<u8>,
    /// Ids of types that have a name, see [`list`].
    named: Vec<Vec<u32>>,
}

/// A type, in words.
struct Type<'a> {
    words: &'a [u32],
    tail: Tail,
}

/// What a type has behind its head.
struct Tail {
    /// The head's last word is a type.
    refers: bool,
    elements: usize,
    /// Words of an element.
    size: usize,
    /// Those of them that are names.
    names: &'static [usize],
    /// Those of them that are types.
    types: &'static [usize],
}

impl Tail {
    /// By the second word of the head; `None`: of no kind that is known, so that its end is not known.
    fn of(info: u32) -> Option<Self> {
        let count = (info & COUNT) as usize;
        let (refers, elements, size, names, types): (_, _, _, &[usize], &[usize]) = match kind(info) {
            BTF_KIND_FWD | BTF_KIND_FLOAT => (false, 0, 0, &[], &[]),
            BTF_KIND_INT => (false, 1, 1, &[], &[]),
            BTF_KIND_ENUM => (false, count, 2, &[0], &[]),
            BTF_KIND_ENUM64 => (false, count, 3, &[0], &[]),
            BTF_KIND_ARRAY => (false, 1, 3, &[], &[0, 1]),
            BTF_KIND_STRUCT | BTF_KIND_UNION => (false, count, 3, &[0], &[1]),
            BTF_KIND_DATASEC => (false, count, 3, &[], &[0]),
            BTF_KIND_PTR | BTF_KIND_TYPEDEF | BTF_KIND_VOLATILE | BTF_KIND_CONST | BTF_KIND_RESTRICT
            | BTF_KIND_FUNC | BTF_KIND_TYPE_TAG => (true, 0, 0, &[], &[]),
            BTF_KIND_VAR | BTF_KIND_DECL_TAG => (true, 1, 1, &[], &[]),
            BTF_KIND_FUNC_PROTO => (true, count, 2, &[0], &[1]),
            _ => return None,
        };
        Some(Self { refers, elements, size, names, types })
    }

    fn words(&self) -> usize {
        HEAD + self.elements * self.size
    }

    /// Where in the type these words of its elements are.
    fn places(&self, of_element: &'static [usize]) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        (0..self.elements)
            .flat_map(move |element| of_element.iter().map(move |word| HEAD + element * size + word))
    }
}

impl Type<'_> {
    fn kind(&self) -> u32 {
        kind(self.words[1])
    }

    fn is_composite(&self) -> bool {
        matches!(self.kind(), BTF_KIND_STRUCT | BTF_KIND_UNION)
    }

    /// Which words are names.
    fn names(&self) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(0).chain(self.tail.places(self.tail.names))
    }

    /// Which words are types.
    fn types(&self) -> impl Iterator<Item = usize> + use<> {
        self.tail.refers.then_some(HEAD - 1).into_iter().chain(self.tail.places(self.tail.types))
    }

    /// The same without its elements.
    fn head(self) -> Self {
        Self { words: &self.words[..HEAD], tail: Tail { elements: 0, ..self.tail } }
    }
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// The list that the id of this name is in; what follows a NUL is not part of it.
fn list(name: &[u8]) -> usize {
    let first = name.iter().take(DISTINCT).take_while(|byte| **byte != 0);
    first.fold(0, |sum, byte| sum * 31 + usize::from(*byte)) % LISTS
}

impl Types {
    /// Adds types: the kernel's first, and then a module's, whose ids and names go on where the kernel's end.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`], and nothing is added.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let bad = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let magic = bytes.first_chunk().map(|magic| u16::from_ne_bytes(*magic));
        if magic != Some(MAGIC) || bytes.get(2) != Some(&VERSION) {
            return Err(bad("it does not begin as BTF of version 1 does"));
        }
        // Where the header says that a section begins, and how long it is.
        let section = |at: usize| {
            let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
            let start = number(4)? + number(at)?;
            bytes.get(start..start + number(at + 4)?)
        };
        let types = section(8).ok_or_else(|| bad("its types are cut off"))?;
        let strings = section(16).ok_or_else(|| bad("its names are cut off"))?;

        let (words, count) = (self.words.len(), self.starts.len());
        self.words.extend(
            types.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])),
        );
        if let Err(why) = self.find_starts(words) {
            self.words.truncate(words);
            self.starts.truncate(count);
            return Err(bad(why));
        }
        self.strings.extend_from_slice(strings);
        self.named.resize_with(LISTS, Vec::new);
        for (id, start) in (1..).zip(&self.starts).skip(count) {
            let name = self.strings.get(self.words[*start] as usize..).unwrap_or_default();
            if name.first().is_some_and(|first| *first != 0) {
                self.named[list(name)].push(id);
            }
        }
        Ok(())
    }

    /// Finds where types begin, from `start` on.
    fn find_starts(&mut self, mut start: usize) -> Result<(), &'static str> {
        while start < self.words.len() {
            self.starts.push(start);
            let info = self.words.get(start + 1).ok_or("a type is cut off")?;
            start += Tail::of(*info).ok_or("a type is of a kind that is not known")?.words();
        }
        if start == self.words.len() { Ok(()) } else { Err("a type is cut off") }
    }

    /// Whether there is a type, or a function, of this name.
    pub fn has(&self, name: &str) -> bool {
        self.ids(name).next().is_some()
    }

    /// Bytes of a struct; `None` if there is no such struct.
    pub fn size(&self, structure: &str) -> Option<usize> {
        self.structure(structure).map(|found| found.words[HEAD - 1] as usize)
    }

    /// Names of a struct's members; none if there is no such struct.
    pub fn members(&self, structure: &str) -> Vec<String> {
        let Some(found) = self.structure(structure) else { return Vec::new() };
        let names = found.names().skip(1).map(|place| self.string(found.words[place]));
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// BTF of its own, of the types that have these names and of what those are made of. A struct that is behind a pointer
    /// has no members there unless it is one of them: CO-RE, which it is for, asks of it no more than its name. Ids are
    /// others, so `bpf_core_type_id_kernel` must not be asked of it.
    pub fn excerpt<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<u8> {
        let kept = self.reached(names.into_iter().flat_map(|name| self.ids(name)));
        let ids: BTreeMap<u32, u32> = kept.keys().copied().zip(1..).collect();
        let mut words = Vec::new();
        let mut strings = vec![0];
        for (id, whole) in kept {
            let Some(found) = self.shown(id, whole) else { continue };
            let start = words.len();
            words.extend_from_slice(found.words);
            if found.is_composite() && !whole {
                words[start + 1] &= !COUNT;
            }
            for place in found.names() {
                let name = self.string(found.words[place]);
                words[start + place] = if name.is_empty() { 0 } else { strings.len() as u32 };
                if !name.is_empty() {
                    strings.extend_from_slice(name);
                    strings.push(0);
                }
            }
            for place in found.types() {
                words[start + place] = ids.get(&found.words[place]).copied().unwrap_or(0);
            }
        }
        let (types, names) = (4 * words.len() as u32, strings.len() as u32);
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([VERSION, 0]);
        bytes.extend([HEADER, 0, types, types, names].into_iter().chain(words).flat_map(u32::to_ne_bytes));
        bytes.extend(strings);
        bytes
    }

    /// Ids of all types that these are made of, and whether with their members.
    fn reached(&self, from: impl Iterator<Item = u32>) -> BTreeMap<u32, bool> {
        let mut reached: BTreeMap<u32, bool> = BTreeMap::new();
        let mut next: Vec<_> = from.map(|id| (id, true)).collect();
        while let Some((id, whole)) = next.pop() {
            let Some(found) = self.shown(id, whole) else { continue };
            let known = reached.get(&id).copied();
            if known.is_none_or(|before| whole && !before) {
                reached.insert(id, whole);
                let whole = whole && found.kind() != BTF_KIND_PTR;
                next.extend(found.types().map(|place| (found.words[place], whole)));
            }
        }
        reached
    }

    /// A type as an excerpt shows it; `None`: `void`, or no type.
    fn shown(&self, id: u32, whole: bool) -> Option<Type<'_>> {
        let found = self.get(id)?;
        Some(if found.is_composite() && !whole { found.head() } else { found })
    }

    fn structure(&self, name: &str) -> Option<Type<'_>> {
        self.ids(name).filter_map(|id| self.get(id)).find(|found| found.kind() == BTF_KIND_STRUCT)
    }

    fn get(&self, id: u32) -> Option<Type<'_>> {
        let start = *self.starts.get((id as usize).checked_sub(1)?)?;
        let tail = Tail::of(*self.words.get(start + 1)?)?;
        Some(Type { words: self.words.get(start..start + tail.words())?, tail })
    }

    /// Ids of all types of this name.
    fn ids(&self, name: &str) -> impl Iterator<Item = u32> {
        let named =
            |id: &u32| self.get(*id).is_some_and(|found| self.string(found.words[0]) == name.as_bytes());
        self.named.get(list(name.as_bytes())).into_iter().flatten().copied().filter(named)
    }

    fn string(&self, offset: u32) -> &[u8] {
        let from = self.strings.get(offset as usize..).unwrap_or_default();
        CStr::from_bytes_until_nul(from).map_or(&[], CStr::to_bytes)
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::types::{MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, BtfKind, BtfType};
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
        types.add(bytes).unwrap();
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
    fn a_structs_members_and_size_are_told_and_those_of_nothing_else() {
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
        types.add(&module.bytes()).unwrap();
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
            let error = types.add(bytes).unwrap_err();
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
        let kinds: Vec<_> = (1..btf.len() as u32)
            .map(|id| btf.type_by_id::<BtfType<'_>>(id.into()).unwrap().kind())
            .collect();
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
            libbpf(&types.excerpt(["tcp_ops"]))
                .type_by_kind::<libbpf_rs::btf::types::FuncProto<'_>>()
                .count()
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
            if types.add(&bytes).is_ok() {
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
        let sources = [directory.clone(), directory.join("kernel")]
            .map(|directory| std::fs::read_dir(directory).unwrap());
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
}
