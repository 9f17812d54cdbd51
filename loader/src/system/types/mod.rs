//! The kernel's type information (BTF): looked up by name, and the part of it that an object is fitted to.
//!
//! libbpf goes through all types of the kernel, a hundred thousand, for each name that it looks up and for each structure
//! of an object. Here they are gone through once, and libbpf is given an excerpt. Format: Documentation/bpf/btf.rst.

mod item;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

use libbpf_sys::{BTF_KIND_PTR, BTF_KIND_STRUCT};

use item::{COUNT, HEAD, Tail, Type};

/// `BTF_MAGIC` and the version behind it.
const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
/// Bytes of the header.
const HEADER: u32 = 24;
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

/// The list that the id of this name is in; what follows a NUL is not part of it.
fn list(name: &[u8]) -> usize {
    let first = name.iter().take(DISTINCT).take_while(|byte| **byte != 0);
    first.fold(0, |sum, byte| sum * 31 + usize::from(*byte)) % LISTS
}
