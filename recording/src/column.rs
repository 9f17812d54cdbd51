// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Columns of a table in memory, in the form in which Parquet keeps them.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use onramp_algorithm::NO_THRESHOLD;
use parquet::data_type::ByteArray;
use serde::Serialize;
use serde::ser::SerializeMap;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// UTF-8.
    Text,
}

impl Kind {
    /// Bytes that a value takes in memory; of a text next to its page.
    pub(crate) fn size(self) -> u64 {
        match self {
            Self::U64 => 8,
            Self::U32 | Self::I32 => 4,
            Self::Text => size_of::<ByteArray>() as u64,
        }
    }
}

/// Longest text, bytes, where a table does not say otherwise: addresses, words, numbers.
pub const TEXT_BYTES: u64 = 64;

/// A column's name, kind and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name, with the unit where it has one; the same in files, exports and `onramp watch --json`.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Longest text that is written and read, bytes.
    pub bytes: u64,
    /// What its values say in JSON.
    pub sense: Sense,
    /// Unit, as in the name; empty: a bare number, a name or a text.
    pub unit: &'static str,
    /// `before` or `after` what its record is about was done, or `during` it; empty: neither.
    pub side: &'static str,
    /// Meaning.
    pub help: &'static str,
}

/// What a column's values say, so that JSON can say it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// What they are.
    Plain,
    /// 0 stands for none.
    Zero,
    /// What is below 0 stands for none.
    Negative,
    /// [`NO_THRESHOLD`] and above stand for none.
    Threshold,
    /// An empty text stands for none.
    Empty,
    /// 0: no, 1: yes.
    Flag,
    /// Flags by these names, lowest bit first.
    Bits(&'static [&'static str]),
}

impl Spec {
    /// Unit, side, what stands for none, and help, as the files' metadata have them: a JSON object.
    pub(crate) fn metadata(&self) -> String {
        let none = match self.sense {
            Sense::Plain | Sense::Flag | Sense::Bits(_) => "never",
            Sense::Zero => "zero",
            Sense::Negative => "negative",
            Sense::Threshold => "no_threshold",
            Sense::Empty => "empty",
        };
        serde_json::json!({"unit": self.unit, "side": self.side, "none": none, "help": self.help.trim()})
            .to_string()
    }

    /// Adds a value to a JSON object: none as null, flags as true or false by their names.
    ///
    /// # Errors
    /// Those of the object.
    pub fn serialize<M: SerializeMap>(&self, value: Shown<'_>, object: &mut M) -> Result<(), M::Error> {
        let none = match (self.sense, value) {
            (Sense::Flag, Shown::Unsigned(number)) => {
                return object.serialize_entry(self.name, &(number != 0));
            }
            (Sense::Bits(names), Shown::Unsigned(number)) => {
                let mut bits = names.iter().enumerate();
                return bits
                    .try_for_each(|(bit, name)| object.serialize_entry(name, &(number >> bit & 1 != 0)));
            }
            (Sense::Zero, Shown::Unsigned(number)) => number == 0,
            (Sense::Negative, Shown::Signed(number)) => number < 0,
            (Sense::Threshold, Shown::Unsigned(number)) => number >= NO_THRESHOLD.into(),
            (Sense::Empty, Shown::Text(text)) => text.is_empty(),
            _ => false,
        };
        object.serialize_entry(self.name, &(!none).then_some(value))
    }
}

/// The values of one column. Unsigned numbers are kept in the signed type of the same width, as in Parquet.
#[derive(Clone, Debug)]
pub enum Column {
    /// [`Kind::U64`].
    I64(Vec<i64>),
    /// [`Kind::U32`] and [`Kind::I32`].
    I32(Vec<i32>),
    /// [`Kind::Text`].
    Text(Vec<ByteArray>),
}

impl Column {
    /// An empty column.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::U64 => Self::I64(Vec::new()),
            Kind::U32 | Kind::I32 => Self::I32(Vec::new()),
            Kind::Text => Self::Text(Vec::new()),
        }
    }

    /// The first row, from 0, whose text is none.
    pub(crate) fn first_not_utf8(&self) -> Option<usize> {
        let Self::Text(values) = self else { return None };
        values.iter().position(|value| value.as_utf8().is_err())
    }

    /// The first row, from 0, whose text is longer than so many bytes, and how long it is.
    pub(crate) fn first_longer(&self, bytes: u64) -> Option<(usize, usize)> {
        let Self::Text(values) = self else { return None };
        values.iter().map(ByteArray::len).enumerate().find(|(_, length)| *length as u64 > bytes)
    }

    /// So many zeros or empty texts.
    pub(crate) fn blank(kind: Kind, rows: usize) -> Self {
        match Self::new(kind) {
            Self::I64(_) => Self::I64(vec![0; rows]),
            Self::I32(_) => Self::I32(vec![0; rows]),
            Self::Text(_) => Self::Text(vec![ByteArray::from(""); rows]),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::I64(values) => values.clear(),
            Self::I32(values) => values.clear(),
            Self::Text(values) => values.clear(),
        }
    }

    /// The values of a 64-bit column; empty if it is none.
    pub(crate) fn longs(&self) -> &[i64] {
        if let Self::I64(values) = self { values } else { &[] }
    }

    /// The values of a 32-bit column; empty if it is none.
    pub(crate) fn words(&self) -> &[i32] {
        if let Self::I32(values) = self { values } else { &[] }
    }
}

/// One value as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Shown<'a> {
    /// A number that cannot be negative.
    Unsigned(u64),
    /// A number that can.
    Signed(i64),
    /// Text.
    Text(&'a str),
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(number) => number.fmt(formatter),
            Self::Signed(number) => number.fmt(formatter),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

/// A Rust type that a column can hold.
pub trait Value: Sized {
    /// The column's kind.
    const KIND: Kind;
    /// The value as it is shown.
    fn show(&self) -> Shown<'_>;
    /// Appends the value; a column of another kind is left alone.
    fn push(self, column: &mut Column);
    /// The value of a row; `None`: there is no such row, or the column is of another kind.
    fn get(column: &Column, row: usize) -> Option<Self>;
}

macro_rules! number {
    ($type:ty, $kind:ident, $variant:ident, $physical:ty, $shown:ident) => {
        impl Value for $type {
            const KIND: Kind = Kind::$kind;
            fn show(&self) -> Shown<'_> {
                Shown::$shown((*self).into())
            }
            fn push(self, column: &mut Column) {
                if let Column::$variant(values) = column {
                    values.push(self as $physical);
                }
            }
            fn get(column: &Column, row: usize) -> Option<Self> {
                if let Column::$variant(values) = column {
                    values.get(row).map(|value| *value as $type)
                } else {
                    None
                }
            }
        }
    };
}
number!(u64, U64, I64, i64, Unsigned);
number!(u32, U32, I32, i32, Unsigned);
number!(i32, I32, I32, i32, Signed);

/// Text of a row: a name that lives as long as the program, or text of its own.
pub type Text = Cow<'static, str>;

impl Value for Text {
    const KIND: Kind = Kind::Text;
    fn show(&self) -> Shown<'_> {
        Shown::Text(self)
    }
    fn push(self, column: &mut Column) {
        if let Column::Text(values) = column {
            values.push(ByteArray::from(match self {
                Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
                Cow::Owned(text) => Bytes::from(text),
            }));
        }
    }
    fn get(column: &Column, row: usize) -> Option<Self> {
        let Column::Text(values) = column else { return None };
        values.get(row).map(|value| value.as_utf8().unwrap_or("").to_owned().into())
    }
}
