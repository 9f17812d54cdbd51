//! One type: how long it is, and which of its words are names and which are types.

use libbpf_sys::{
    BTF_KIND_ARRAY, BTF_KIND_CONST, BTF_KIND_DATASEC, BTF_KIND_DECL_TAG, BTF_KIND_ENUM, BTF_KIND_ENUM64,
    BTF_KIND_FLOAT, BTF_KIND_FUNC, BTF_KIND_FUNC_PROTO, BTF_KIND_FWD, BTF_KIND_INT, BTF_KIND_PTR,
    BTF_KIND_RESTRICT, BTF_KIND_STRUCT, BTF_KIND_TYPE_TAG, BTF_KIND_TYPEDEF, BTF_KIND_UNION, BTF_KIND_VAR,
    BTF_KIND_VOLATILE,
};

/// Words at the beginning of every type: its name, its kind with the count of its elements, and its size or the type that
/// it refers to.
pub(super) const HEAD: usize = 3;
/// The part of the second word that is the count.
pub(super) const COUNT: u32 = 0xffff;

/// A type: its bytes, and what is behind its head.
pub(super) struct Type<'a> {
    bytes: &'a [u8],
    tail: Tail,
}

/// What a type has behind its head.
pub(super) struct Tail {
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
    const fn of(info: u32) -> Option<Self> {
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

    const fn words(&self) -> usize {
        HEAD + self.elements * self.size
    }

    /// Where in the type these words of its elements are.
    fn places(&self, of_element: &'static [usize]) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        (0..self.elements)
            .flat_map(move |element| of_element.iter().map(move |word| HEAD + element * size + word))
    }
}

impl<'a> Type<'a> {
    /// The type that these bytes begin with; `None`: it is cut off, or of no kind that is known.
    pub fn at(bytes: &'a [u8]) -> Option<Self> {
        let tail = Tail::of(word(bytes, 4)?)?;
        Some(Self { bytes: bytes.get(..4 * tail.words())?, tail })
    }

    /// The word at this place; 0 where there is none.
    pub fn word(&self, place: usize) -> u32 {
        word(self.bytes, 4 * place).unwrap_or(0)
    }

    pub fn words(&self) -> impl Iterator<Item = u32> {
        self.bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
    }

    pub fn kind(&self) -> u32 {
        kind(self.word(1))
    }

    pub fn is_composite(&self) -> bool {
        matches!(self.kind(), BTF_KIND_STRUCT | BTF_KIND_UNION)
    }

    /// Which words are names.
    pub fn names(&self) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(0).chain(self.tail.places(self.tail.names))
    }

    /// Which words are types.
    pub fn types(&self) -> impl Iterator<Item = usize> + use<> {
        self.tail.refers.then_some(HEAD - 1).into_iter().chain(self.tail.places(self.tail.types))
    }

    /// The same without its elements.
    pub fn head(self) -> Self {
        Self { bytes: &self.bytes[..4 * HEAD], tail: Tail { elements: 0, ..self.tail } }
    }
}

const fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// Words of a type of each kind without elements, and those of an element: looked up for every type of the kernel.
const LENGTHS: [Option<(usize, usize)>; 32] = {
    let mut lengths = [None; 32];
    let mut of = 0;
    while of < lengths.len() {
        let info = (of as u32) << 24;
        if let (Some(none), Some(one)) = (Tail::of(info), Tail::of(info | 1)) {
            lengths[of] = Some((none.words(), one.words() - none.words()));
        }
        of += 1;
    }
    lengths
};

/// Words of a type, by the second word of its head; `None`: of no kind that is known, so that its end is not known.
pub(super) fn words(info: u32) -> Option<usize> {
    let (head, element) = LENGTHS[kind(info) as usize]?;
    Some(head + element * (info & COUNT) as usize)
}

/// The word at this byte.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}
