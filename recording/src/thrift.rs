// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The headers of a Parquet file, which are structures in Thrift's compact protocol. They are walked before Parquet's reader
//! sees them: it reserves memory, and loops, for the sizes of lists and groups that they state.

/// Structures and lists within one another; Parquet's own have six.
const DEPTH: usize = 8;

/// What a walk meets.
pub(crate) enum Met {
    /// An integer.
    Number(i64),
    /// A list with so many elements, before these.
    List(usize),
}

/// Goes through the structure at the beginning of these bytes. `each` gets what it meets, with the identifiers of the
/// fields that lead there; elements of a list have that of the list. Returns the structure's length; none: it has no end
/// in these bytes, or holds what no header of a recording has.
pub(crate) fn walk(bytes: &[u8], mut each: impl FnMut(&[i64], Met)) -> Option<usize> {
    let mut walk = Walk { rest: bytes, fields: Vec::with_capacity(DEPTH), each: &mut each };
    walk.structure()?;
    Some(bytes.len() - walk.rest.len())
}

struct Walk<'a, F> {
    rest: &'a [u8],
    fields: Vec<i64>,
    each: &'a mut F,
}

impl<F: FnMut(&[i64], Met)> Walk<'_, F> {
    fn bytes(&mut self, number: usize) -> Option<&[u8]> {
        let (bytes, rest) = self.rest.split_at_checked(number)?;
        self.rest = rest;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn size(&mut self) -> Option<usize> {
        let size = usize::try_from(self.varint()?).ok()?;
        // Every element takes a byte at least.
        (size <= self.rest.len()).then_some(size)
    }

    fn structure(&mut self) -> Option<()> {
        if self.fields.len() == DEPTH {
            return None;
        }
        let mut field = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = if head >> 4 == 0 { self.integer()? } else { field + i64::from(head >> 4) };
            self.fields.push(field);
            // The value of a boolean field is its type.
            if !matches!(head & 0xf, 1 | 2) {
                self.value(head & 0xf)?;
            }
            self.fields.pop();
        }
    }

    fn value(&mut self, kind: u8) -> Option<()> {
        match kind {
            3 => self.byte().map(drop),
            4..=6 => {
                let number = self.integer()?;
                (self.each)(&self.fields, Met::Number(number));
                Some(())
            }
            7 => self.bytes(8).map(drop),
            8 => {
                let size = self.size()?;
                self.bytes(size).map(drop)
            }
            9 => {
                let head = self.byte()?;
                let size = if head >> 4 == 15 { self.size()? } else { usize::from(head >> 4) };
                (self.each)(&self.fields, Met::List(size));
                (0..size).try_for_each(|_| self.value(head & 0xf))
            }
            12 => self.structure(),
            // Booleans in lists, sets, maps and UUIDs are in no header that is written here.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way to each number, and the number; of a list its negative length.
    type Numbers = Vec<(Vec<i64>, i64)>;

    fn numbers(bytes: &[u8]) -> Option<(usize, Numbers)> {
        let mut met = Vec::new();
        let length = walk(bytes, |fields, what| match what {
            Met::Number(number) => met.push((fields.to_vec(), number)),
            Met::List(size) => met.push((fields.to_vec(), -(size as i64))),
        })?;
        Some((length, met))
    }

    #[test]
    fn fields_are_met_with_the_way_that_leads_to_them() {
        // 1: 2, 5: {1: -1, true, 40: "ab"}, 7: [3, 4]
        let bytes = [0x15, 4, 0x4c, 0x15, 1, 0x11, 0x08, 80, 2, b'a', b'b', 0, 0x29, 0x25, 6, 8, 0, 99];
        let met = vec![(vec![1], 2), (vec![5, 1], -1), (vec![7], -2), (vec![7], 3), (vec![7], 4)];
        assert_eq!(numbers(&bytes), Some((bytes.len() - 1, met)));
        assert!((0..bytes.len() - 1).all(|end| numbers(&bytes[..end]).is_none()), "it has no end");
    }

    #[test]
    fn what_makes_a_reader_reserve_or_loop_is_refused() {
        let billion = [0xff, 0xff, 0xff, 0xff, 0x07];
        for (name, bytes) in [
            ("a list longer than the rest", [&[0x19, 0xf5], &billion[..]].concat()),
            ("booleans, which take no bytes in some readers", [&[0x19, 0xf1], &billion[..]].concat()),
            ("a text longer than the rest", [&[0x18], &billion[..]].concat()),
            ("structures in structures", [0x1c; 4_000].to_vec()),
            ("lists in lists", [[0x19; 1].to_vec(), vec![0x19; 4_000]].concat()),
            ("a map", vec![0x1b, 1, 0x55, 2, 2, 0]),
            ("a number without end", [vec![0x15], vec![0xff; 20]].concat()),
        ] {
            assert!(numbers(&bytes).is_none(), "{name}");
        }
    }
}
