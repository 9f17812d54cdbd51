// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the pages of a column would unpack to, by their headers: looked at before any of them is unpacked. Compression, runs
//! and shared beginnings make gigabytes of a small file, so what no recorder writes is refused.

use std::collections::BTreeMap;

use crate::column::{Kind, Spec};
use crate::thrift::{Met, walk};

/// Of Parquet, by their numbers there.
const ENCODINGS: [&str; 10] = [
    "PLAIN",
    "GROUP_VAR_INT",
    "PLAIN_DICTIONARY",
    "RLE",
    "BIT_PACKED",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY",
    "BYTE_STREAM_SPLIT",
];
/// What values are encoded with in a recording; a dictionary itself has the first or the second.
const TEXT: [&str; 3] = ["PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY"];
const NUMBERS: [&str; 4] = ["PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"];
/// Of a page of few values: its levels, and the last block of deltas.
const PAGE_BYTES: u64 = 4_096;

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;

impl Spec {
    /// Largest value in a page: a text with its length, or a number with its share of a block's header.
    fn encoded_bytes(&self) -> u64 {
        match self.kind {
            Kind::Text => 4 + self.bytes,
            Kind::U64 | Kind::U32 | Kind::I32 => 9,
        }
    }
}

/// The bytes that the pages of a column chunk unpack to, where it has so many rows at most.
pub(crate) fn survey(chunk: &[u8], rows: u64, spec: &Spec) -> Result<u64, String> {
    let name = spec.name;
    let (mut rest, mut values, mut unpacked, mut dictionaries) = (chunk, 0, 0, 0);
    while !rest.is_empty() {
        let mut fields = BTreeMap::new();
        let length = walk(rest, |field, met| {
            if let Met::Number(number) = met {
                fields.insert(field.to_vec(), number);
            }
        });
        let of = |field: &[i64]| {
            let number = fields.get(field).filter(|number| (0..=i64::from(i32::MAX)).contains(*number));
            number.map(|number| *number as u64).ok_or(())
        };
        let broken = |()| format!("column {name} has a page whose header is none");
        let length = length.ok_or(()).map_err(broken)?;
        let kind = fields.get([1].as_slice()).copied().unwrap_or(-1);
        let head = match kind {
            DATA => 5,
            DICTIONARY => 7,
            _ => return Err(format!("column {name} has a page of kind {kind}, which no recording has")),
        };
        let stated = (|| Ok((of(&[2])?, of(&[3])?, of(&[head, 1])?, of(&[head, 2])?)))().map_err(broken)?;
        let (bytes, packed, number, encoding) = stated;
        let encoding = ENCODINGS.get(encoding as usize).copied().unwrap_or("another encoding");
        let read = match spec.kind {
            _ if kind == DICTIONARY => &TEXT[..2],
            Kind::Text => &TEXT,
            Kind::U64 | Kind::U32 | Kind::I32 => &NUMBERS,
        };
        if !read.contains(&encoding) {
            return Err(format!("column {name} is encoded with {encoding}: {} are read", read.join(", ")));
        }
        if kind == DATA {
            values += number;
        } else {
            dictionaries += 1;
        }
        if values > rows || number > rows || dictionaries > 1 {
            return Err(format!("column {name} has more values than its {rows} rows"));
        }
        let most = number * spec.encoded_bytes() + PAGE_BYTES;
        if bytes > most {
            return Err(format!(
                "column {name} has a page that unpacks to {bytes} bytes: {number} values take {most} at most"
            ));
        }
        unpacked += bytes;
        rest = usize::try_from(packed)
            .ok()
            .and_then(|packed| rest.get(length + packed..))
            .ok_or(())
            .map_err(broken)?;
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;
    use crate::rows::{DropRow, ParameterRow};

    fn varint(number: i64) -> Vec<u8> {
        let mut rest = ((number << 1) ^ (number >> 63)) as u64;
        let mut bytes = Vec::new();
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    /// A page of this kind with so many values in this encoding, and what its header says of its sizes.
    fn page(kind: i64, values: i64, encoding: i64, unpacked: i64, packed: i64) -> Vec<u8> {
        let head: u8 = match kind {
            0 => 0x2c,
            2 => 0x4c,
            _ => 0x5c,
        };
        let mut bytes = Vec::new();
        for number in [kind, unpacked, packed] {
            bytes.push(0x15);
            bytes.extend(varint(number));
        }
        bytes.push(head);
        for number in [values, encoding] {
            bytes.push(0x15);
            bytes.extend(varint(number));
        }
        bytes.extend([0, 0]);
        bytes.extend(vec![7; usize::try_from(packed).unwrap_or(0).min(100)]);
        bytes
    }

    #[test]
    fn what_pages_unpack_to_is_known_before_and_what_no_recorder_writes_is_refused() {
        let text = &ParameterRow::COLUMNS[1];
        let number = &DropRow::COLUMNS[0];
        let two = [page(2, 10, 0, 500, 9), page(0, 600, 8, 700, 20), page(0, 400, 0, 30_000, 30)].concat();
        assert_eq!(survey(&two, 1_000, text), Ok(31_200));
        assert_eq!(survey(&page(0, 1_000, 5, 9_000, 20), 1_000, number), Ok(9_000));
        assert_eq!(survey(&[], 1_000, number), Ok(0));
        for (chunk, spec, said) in [
            (page(0, 1_000, 7, 90, 20), text, "is encoded with DELTA_BYTE_ARRAY: PLAIN,"),
            (page(0, 1_000, 6, 90, 20), text, "is encoded with DELTA_LENGTH_BYTE_ARRAY"),
            (page(0, 1_000, 5, 90, 20), text, "is encoded with DELTA_BINARY_PACKED"),
            (page(0, 1_000, 9, 90, 20), number, "is encoded with BYTE_STREAM_SPLIT"),
            (page(0, 1_000, 77, 90, 20), number, "is encoded with another encoding"),
            (
                page(2, 10, 8, 90, 20),
                number,
                "is encoded with RLE_DICTIONARY: PLAIN, PLAIN_DICTIONARY are read",
            ),
            (page(0, 1_000, 0, 72_097, 20), text, "unpacks to 72097 bytes: 1000 values take 72096 at most"),
            (page(0, 1_000, 0, i64::from(i32::MAX), 20), number, "unpacks to 2147483647 bytes"),
            (page(2, 1, 0, 50_000_000, 20), text, "unpacks to 50000000 bytes"),
            (page(0, 1_001, 0, 90, 20), number, "more values than its 1000 rows"),
            ([page(0, 600, 0, 90, 20), page(0, 600, 0, 90, 20)].concat(), number, "more values than its"),
            (page(2, 1_001, 0, 90, 20), number, "more values than its"),
            ([page(2, 1, 0, 90, 20), page(2, 1, 0, 90, 20)].concat(), number, "more values than its"),
            (page(1, 1, 0, 90, 20), number, "a page of kind 1"),
            (page(3, 1, 0, 90, 20), number, "a page of kind 3"),
            (page(0, 1_000, 0, -1, 20), number, "whose header is none"),
            (page(0, -1, 0, 90, 20), number, "whose header is none"),
            (page(0, 1_000, 0, 90, 1_000), number, "whose header is none"),
            (vec![0x19, 0xf1, 0xff, 0xff, 0xff, 0x7f], number, "whose header is none"),
        ] {
            let error = survey(&chunk, 1_000, spec).unwrap_err();
            assert!(error.contains(spec.name) && error.contains(said), "{said}: {error}");
        }
    }
}
