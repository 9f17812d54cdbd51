// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The row of an algorithm's table, out of an object.

use std::ffi::{CString, c_char};
use std::mem::offset_of;
use std::ptr::NonNull;

use super::Functions;
use super::image::Image;
use crate::contract::{AlgorithmRow, ExportRow, OUTCOME_MAX, OutcomeRow, ParameterRow, TrackRow};

/// The table of an object, which has one row.
const TABLE: &str = "onramp_algorithms";
/// Parameters that a shell has room for (`struct parameter_slot`).
pub(super) const PARAMETERS_MAX: u32 = 16;
/// Exports and tracks: more is not shown.
const ROWS_MAX: u32 = 64;
/// Largest state that a socket's storage has room for, bytes.
const STATE_BYTES_MAX: u32 = 16 << 10;
/// Longest name of an algorithm, bytes: pins and programs of BPF have it.
const NAME_MAX: usize = 15;

/// A structure of the table as the object has it.
struct Fields<'a> {
    image: &'a Image,
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn word(&self, offset: usize) -> Result<u64, String> {
        let word = self.bytes.get(offset..).and_then(|bytes| bytes.first_chunk());
        word.map(|word| u64::from_le_bytes(*word)).ok_or_else(|| "its table is cut off".to_owned())
    }

    fn number(&self, offset: usize) -> Result<u32, String> {
        let word = self.bytes.get(offset..).and_then(|bytes| bytes.first_chunk());
        word.map(|word| u32::from_le_bytes(*word)).ok_or_else(|| "its table is cut off".to_owned())
    }

    fn text(&self, offset: usize) -> Result<&str, String> {
        self.image.text(self.word(offset)?).ok_or_else(|| "its table has what is no text".to_owned())
    }

    /// For as long as the process lives.
    fn kept(&self, offset: usize) -> Result<*const c_char, String> {
        let text = CString::new(self.text(offset)?).map_err(|error| error.to_string())?;
        Ok(text.into_raw().cast_const())
    }

    /// The rows that a pointer leads to, made by `make` and kept.
    fn rows<T>(
        &self,
        offset: usize,
        count: u32,
        make: impl Fn(&Fields<'_>) -> Result<T, String>,
    ) -> Result<*const T, String> {
        let address = self.word(offset)?;
        let mut rows = Vec::new();
        for at in 0..u64::from(count) {
            let bytes = self.image.address(address.wrapping_add(at * size_of::<T>() as u64));
            rows.push(make(&Fields { image: self.image, bytes: bytes.unwrap_or_default() })?);
        }
        Ok(rows.leak().as_ptr())
    }
}

/// The row, and its functions in the image.
pub(super) fn read(image: &Image) -> Result<(AlgorithmRow, Functions), String> {
    let bytes = image.at(TABLE).ok_or_else(|| format!("it has no {TABLE}"))?;
    let row = Fields { image, bytes };
    let counted = |what: &str, offset: usize, most: u32| {
        let count = row.number(offset)?;
        if count <= most {
            Ok(count)
        } else {
            Err(format!("it has {count} {what}, and at most {most} are possible"))
        }
    };
    let parameter_count = counted("parameters", offset_of!(AlgorithmRow, parameter_count), PARAMETERS_MAX)?;
    let outcome_count = counted("outcomes", offset_of!(AlgorithmRow, outcome_count), OUTCOME_MAX as u32)?;
    let export_count = counted("exports", offset_of!(AlgorithmRow, export_count), ROWS_MAX)?;
    let track_count = counted("tracks", offset_of!(AlgorithmRow, track_count), 1)?;
    let state_size = counted("bytes of state", offset_of!(AlgorithmRow, state_size), STATE_BYTES_MAX)?;
    let kept_size = counted("bytes of state that are kept", offset_of!(AlgorithmRow, kept_size), state_size)?;
    if state_size % 8 != 0 || kept_size % 8 != 0 || kept_size == 0 {
        return Err(format!(
            "its state has {kept_size} bytes: give its structure a multiple of 8, and at least 8"
        ));
    }
    let parameter = |one: &Fields<'_>| {
        let made = ParameterRow {
            name: one.kept(offset_of!(ParameterRow, name))?,
            unit: one.kept(offset_of!(ParameterRow, unit))?,
            choices: one.kept(offset_of!(ParameterRow, choices))?,
            help: one.kept(offset_of!(ParameterRow, help))?,
            def: one.word(offset_of!(ParameterRow, def))?,
            min: one.word(offset_of!(ParameterRow, min))?,
            max: one.word(offset_of!(ParameterRow, max))?,
        };
        let (name, choices) =
            (one.text(offset_of!(ParameterRow, name))?, one.text(offset_of!(ParameterRow, choices))?);
        if !(made.min..=made.max).contains(&made.def) {
            return Err(format!(
                "parameter {name}: its default {} is not in {}..{}",
                made.def, made.min, made.max
            ));
        }
        let count = choices.split('|').filter(|choice| !choice.is_empty()).count() as u64;
        if count > 0 && (made.min != 0 || made.max != count - 1) {
            return Err(format!("parameter {name}: its {count} choices have the range 0..{}", count - 1));
        }
        Ok(made)
    };
    let outcome = |one: &Fields<'_>| {
        Ok(OutcomeRow {
            name: one.kept(offset_of!(OutcomeRow, name))?,
            help: one.kept(offset_of!(OutcomeRow, help))?,
        })
    };
    let export = |one: &Fields<'_>| {
        let made = ExportRow {
            name: one.kept(offset_of!(ExportRow, name))?,
            unit: one.kept(offset_of!(ExportRow, unit))?,
            help: one.kept(offset_of!(ExportRow, help))?,
            offset: one.number(offset_of!(ExportRow, offset))?,
            count: one.number(offset_of!(ExportRow, count))?,
        };
        let end = u64::from(made.offset) + 4 * u64::from(made.count);
        let name = one.text(offset_of!(ExportRow, name))?;
        if end > u64::from(kept_size) { Err(format!("export {name} is not in its state")) } else { Ok(made) }
    };
    let track = |one: &Fields<'_>| {
        Ok(TrackRow {
            title: one.kept(offset_of!(TrackRow, title))?,
            unit: one.kept(offset_of!(TrackRow, unit))?,
            limit_title: one.kept(offset_of!(TrackRow, limit_title))?,
        })
    };
    let (name, control) =
        (row.text(offset_of!(AlgorithmRow, name))?, row.text(offset_of!(AlgorithmRow, control))?);
    check_name("algorithm", name)?;
    check_name("control", control)?;
    let made = AlgorithmRow {
        name: row.kept(offset_of!(AlgorithmRow, name))?,
        control: row.kept(offset_of!(AlgorithmRow, control))?,
        about: row.kept(offset_of!(AlgorithmRow, about))?,
        source: row.kept(offset_of!(AlgorithmRow, source))?,
        parameters: row.rows(offset_of!(AlgorithmRow, parameters), parameter_count, parameter)?,
        outcomes: row.rows(offset_of!(AlgorithmRow, outcomes), outcome_count, outcome)?,
        exports: row.rows(offset_of!(AlgorithmRow, exports), export_count, export)?,
        tracks: row.rows(offset_of!(AlgorithmRow, tracks), track_count, track)?,
        parameter_count,
        outcome_count,
        export_count,
        track_count,
        traits: row.number(offset_of!(AlgorithmRow, traits))?,
        state_size,
        kept_size,
        unused: 0,
        restart: None,
        on_ack: None,
        on_loss: None,
        track: None,
        picture: None,
    };
    let entry = |offset: usize| Ok::<_, String>(row.word(offset)? as usize);
    let functions = Functions {
        restart: entry(offset_of!(AlgorithmRow, restart))?,
        on_ack: entry(offset_of!(AlgorithmRow, on_ack))?,
        on_loss: entry(offset_of!(AlgorithmRow, on_loss))?,
        track: entry(offset_of!(AlgorithmRow, track))?,
        picture: entry(offset_of!(AlgorithmRow, picture))?,
    };
    Ok((made, functions))
}

/// The row of an algorithm of which nothing but the name is known.
pub(super) fn named(name: &str) -> Result<AlgorithmRow, String> {
    let control = format!("onramp_{name}");
    check_name("algorithm", name)?;
    check_name("control", &control)?;
    let kept = |text: &str| {
        CString::new(text).map(|text| text.into_raw().cast_const()).map_err(|error| error.to_string())
    };
    Ok(AlgorithmRow {
        name: kept(name)?,
        control: kept(&control)?,
        about: kept("of another build")?,
        source: kept("")?,
        parameters: NonNull::dangling().as_ptr(),
        outcomes: NonNull::dangling().as_ptr(),
        exports: NonNull::dangling().as_ptr(),
        tracks: NonNull::dangling().as_ptr(),
        parameter_count: 0,
        outcome_count: 0,
        export_count: 0,
        track_count: 0,
        traits: 0,
        state_size: 8,
        kept_size: 8,
        unused: 0,
        restart: None,
        on_ack: None,
        on_loss: None,
        track: None,
        picture: None,
    })
}

/// What the kernel, pins and command lines take.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), String> {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
    if name.len() > NAME_MAX || !begins || !name.chars().all(allowed) {
        return Err(format!(
            "{what} {name:?}: give at most {NAME_MAX} bytes of lower-case letters, digits and _, a letter first"
        ));
    }
    Ok(())
}
