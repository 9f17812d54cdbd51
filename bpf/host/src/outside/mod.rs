// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Algorithms from outside the tree: objects that `onramp-lab build` makes of a header.
//!
//! An object is the shell of the algorithm for the kernel; sections of their own have the shell for base BBR, and the table
//! and functions that the host build has of each algorithm of the tree, compiled for BPF. The host executes these in a
//! machine that reaches nothing but what it is given, so that an object from elsewhere can do no harm before the verifier
//! has seen it.

mod error;
mod image;
mod machine;
mod row;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::slice::{from_mut, from_ref};
use std::sync::{PoisonError, RwLock};

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};
use onramp_files::bounded;

pub use error::OutsideError;
pub use machine::Fault;

use crate::contract::{ABI_VERSION, Ack, AlgorithmRow, PictureRow, TrackReading, Verdict};
use crate::ffi::{rows, text};
use image::Image;
use machine::{Argument, Bytes};

/// The section that has the host's part.
pub const HOST_SECTION: &str = ".onramp.host";
/// The section that has the shell for base BBR.
pub const BBR_SECTION: &str = ".onramp.bbr";
/// What is in front of the ABI's version (`struct object_abi`).
const ABI_MARK: &[u8] = b"onramp ABI\0\0";
/// What the names of tests begin with.
const TEST: &str = "test_";
/// What a test leaves the first line in whose check has failed.
const FAILED_LINE: &str = "onramp_failed_line";
/// Largest object that is read, bytes.
const OBJECT_BYTES: u64 = 16 << 20;

/// Those that this process has read, in that order; they stay.
static READ: RwLock<Vec<&'static Outside>> = RwLock::new(Vec::new());

/// What calls algorithms, on this thread or on others that it joins.
///
/// # Errors
/// [`OutsideError::Broken`], if one from outside the tree does what the kernel's verifier would refuse.
pub fn caught<T>(calls: impl FnOnce() -> T) -> Result<T, OutsideError> {
    catch_unwind(AssertUnwindSafe(calls)).map_err(|panic| match panic.downcast() {
        Ok(broken) => *broken,
        Err(panic) => resume_unwind(panic),
    })
}

/// An algorithm from outside the tree.
pub struct Outside {
    pub(crate) row: AlgorithmRow,
    origin: PathBuf,
    /// All of it, the shell for bases CUBIC and Reno.
    whole: Vec<u8>,
    bbr: Vec<u8>,
    image: Image,
    functions: Functions,
}

/// Where the functions of a row are.
pub(crate) struct Functions {
    restart: usize,
    on_ack: usize,
    on_loss: usize,
    track: usize,
    picture: usize,
}

// SAFETY: the pointers of the row are to constant data that stays.
unsafe impl Send for Outside {}
// SAFETY: likewise.
unsafe impl Sync for Outside {}

/// Whether a name is the path of an object: it has a slash, or ends in `.o`.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".o")
}

/// The algorithm of the object at `path`, which all of this process finds by its name from then on.
///
/// # Errors
/// [`OutsideError`]: the file cannot be read, is no such object, is for another ABI, or has the name of another algorithm.
pub fn open(path: &Path) -> Result<&'static Outside, OutsideError> {
    let bytes = bounded::read(path, OBJECT_BYTES)
        .map_err(|source| OutsideError::Read { path: path.to_owned(), source })?;
    read(bytes, path)
}

/// The same with the object's bytes; `origin` is what messages name it by.
///
/// # Errors
/// As [`open`].
pub fn read(bytes: Vec<u8>, origin: &Path) -> Result<&'static Outside, OutsideError> {
    keep(parse(bytes, origin)?)
}

/// The algorithm of this name whose object is for another ABI, so that nothing is known but its name: it is attached, and
/// can be named and detached.
///
/// # Errors
/// [`OutsideError::NoObject`] for what is no name of an algorithm; as [`open`].
pub fn named(name: &str, origin: &Path) -> Result<&'static Outside, OutsideError> {
    let row = row::named(name).map_err(|why| no_object(origin, why))?;
    let functions = Functions { restart: 0, on_ack: 0, on_loss: 0, track: 0, picture: 0 };
    let (image, origin) = (Image::default(), origin.to_owned());
    keep(Outside { row, origin, whole: Vec::new(), bbr: Vec::new(), image, functions })
}

/// Names that mean something else wherever an algorithm can be named: controls of Linux, and the simulator's own.
const OTHERS: [&str; 18] = [
    "bbr", "bic", "cdg", "cubic", "dctcp", "htcp", "hybla", "illinois", "lp", "nv", "oracle", "prague",
    "reno", "scalable", "vegas", "veno", "westwood", "yeah",
];

/// Whether an algorithm from outside the tree can have this name.
///
/// # Errors
/// [`OutsideError::NameOfTheTree`], [`OutsideError::NameOfAnother`].
pub fn require_free(name: &str) -> Result<(), OutsideError> {
    if rows().iter().any(|row| text(row.name) == name) {
        return Err(OutsideError::NameOfTheTree { name: name.to_owned() });
    }
    if OTHERS.contains(&name) {
        return Err(OutsideError::NameOfAnother { name: name.to_owned() });
    }
    Ok(())
}

/// Has all of this process find it.
fn keep(outside: Outside) -> Result<&'static Outside, OutsideError> {
    let mut all = READ.write().unwrap_or_else(PoisonError::into_inner);
    let name = outside.name();
    require_free(name)?;
    if rows().iter().any(|row| text(row.control) == outside.control()) {
        return Err(OutsideError::NameOfTheTree { name: name.to_owned() });
    }
    let same = |one: &&Outside| one.name() == name || one.control() == outside.control();
    let known = all.iter().position(same);
    match known.map(|at| all[at]) {
        Some(one) if one.whole == outside.whole => return Ok(one),
        // Built anew, which takes the place of what it was.
        Some(one) if one.origin != outside.origin => {
            return Err(OutsideError::NameTwice {
                name: name.to_owned(),
                origin: outside.origin,
                other: one.origin.clone(),
            });
        }
        _ => {}
    }
    let outside: &'static Outside = Box::leak(Box::new(outside));
    match known {
        Some(at) => all[at] = outside,
        None => all.push(outside),
    }
    Ok(outside)
}

/// The algorithms from outside the tree that this process has read.
pub(crate) fn all() -> Vec<&'static Outside> {
    READ.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether the host's part of an object is as it should be.
///
/// # Errors
/// As [`read`], but for the name.
pub fn check(host: &[u8], origin: &Path) -> Result<(), OutsideError> {
    of_host(host, origin).map(drop)
}

fn parse(bytes: Vec<u8>, origin: &Path) -> Result<Outside, OutsideError> {
    let (host, bbr) = {
        let file =
            ElfFile64::<Endianness>::parse(&*bytes).map_err(|_| no_object(origin, "it is no ELF object"))?;
        let section = |name: &str| file.section_by_name(name)?.data().ok().map(<[u8]>::to_vec);
        let missing = || no_object(origin, "it lacks a section that `onramp-lab build` makes");
        (section(HOST_SECTION).ok_or_else(missing)?, section(BBR_SECTION).ok_or_else(missing)?)
    };
    Ok(Outside { whole: bytes, bbr, ..of_host(&host, origin)? })
}

fn no_object(origin: &Path, why: impl Into<String>) -> OutsideError {
    OutsideError::NoObject { path: origin.to_owned(), why: why.into() }
}

/// What the host's part says, without the shells.
fn of_host(host: &[u8], origin: &Path) -> Result<Outside, OutsideError> {
    let no_object = |why| no_object(origin, why);
    let image = Image::read(host).map_err(no_object)?;
    let version = image
        .at("onramp_abi")
        .and_then(|bytes| bytes.strip_prefix(ABI_MARK)?.first_chunk())
        .map(|word| u32::from_le_bytes(*word));
    let version = version.ok_or_else(|| no_object("it does not say for which ABI it is".to_owned()))?;
    if version != ABI_VERSION {
        return Err(OutsideError::Abi { path: origin.to_owned(), version, ours: ABI_VERSION });
    }
    let (row, functions) = row::read(&image).map_err(no_object)?;
    // Where it is also for a process in another directory.
    let place = std::path::absolute(origin).unwrap_or_else(|_| origin.to_owned());
    let outside = Outside { row, origin: place, whole: Vec::new(), bbr: Vec::new(), image, functions };
    outside.try_out().map_err(no_object)?;
    Ok(outside)
}

/// The name of a test, and what came of it.
pub type TestResult = (String, Result<(), TestFailure>);

/// Runs the tests of an object of `onramp-lab build` for tests: name, and the line of the first check that failed or what
/// stopped it.
///
/// # Errors
/// What of the object is not as it should be.
pub fn run_tests(object: &[u8]) -> Result<Vec<TestResult>, String> {
    let image = Image::read(object)?;
    let line = |image: &Image| {
        let word = image.at(FAILED_LINE)?.first_chunk()?;
        Some(u32::from_le_bytes(*word))
    };
    let mut results = Vec::new();
    for (name, entry) in image.functions(TEST) {
        let result = match image.call_apart(entry) {
            Err(fault) => Err(TestFailure::Fault(fault)),
            Ok(after) => match line(&after) {
                None | Some(0) => Ok(()),
                Some(line) => Err(TestFailure::Line(line)),
            },
        };
        results.push((name.to_owned(), result));
    }
    Ok(results)
}

/// Why a test of an algorithm from outside the tree has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestFailure {
    /// The check in this line of its file.
    Line(u32),
    /// What it did.
    Fault(Fault),
}

impl Outside {
    fn name(&self) -> &'static str {
        text(self.row.name)
    }

    fn control(&self) -> &'static str {
        text(self.row.control)
    }

    /// Where it was read from.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// All of the object, which is the shell for bases CUBIC and Reno.
    pub fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// The shell for base BBR.
    pub fn bbr(&self) -> &[u8] {
        &self.bbr
    }

    fn attempt<const N: usize>(
        &self,
        function: &str,
        entry: usize,
        arguments: [Argument<'_>; N],
    ) -> Result<u64, String> {
        let answer = self.image.call(entry, arguments);
        answer.map_err(|fault| format!("{}_{function} {fault}", self.name()))
    }

    /// Calls each function once, so that what can do nothing is refused at once.
    fn try_out(&self) -> Result<(), String> {
        let mut state = vec![0u64; self.row.state_size as usize / 8];
        let words = [0u64; row::PARAMETERS_MAX as usize];
        let ack = Ack { mss: 1, ..Ack::default() };
        let mut verdict = Verdict::default();
        self.attempt("restart", self.functions.restart, [written(&mut state)])?;
        let arguments = [
            written(&mut state),
            only_read(&words),
            only_read(from_ref(&ack)),
            written(from_mut(&mut verdict)),
        ];
        self.attempt("on_ack", self.functions.on_ack, arguments)?;
        let arguments =
            [written(&mut state), only_read(&words), only_read(from_ref(&ack)), Argument::Number(2)];
        self.attempt("on_loss", self.functions.on_loss, arguments).map(|_| ())
    }

    /// Unwinds to [`caught`] if the code does what the kernel's verifier would refuse: there is no verdict then.
    fn call<const N: usize>(&self, function: &str, entry: usize, arguments: [Argument<'_>; N]) -> u64 {
        match self.attempt(function, entry, arguments) {
            Ok(answer) => answer,
            Err(why) => resume_unwind(Box::new(OutsideError::Broken { path: self.origin.clone(), why })),
        }
    }

    pub(crate) fn restart(&self, state: &mut [u64]) {
        self.call("restart", self.functions.restart, [written(state)]);
    }

    pub(crate) fn on_ack(&self, state: &mut [u64], words: &[u64], ack: &Ack, verdict: &mut Verdict) {
        let arguments =
            [written(state), only_read(words), only_read(from_ref(ack)), written(from_mut(verdict))];
        self.call("on_ack", self.functions.on_ack, arguments);
    }

    pub(crate) fn on_loss(&self, state: &mut [u64], words: &[u64], ack: &Ack, base_ssthresh: u32) -> u32 {
        let base = Argument::Number(base_ssthresh.into());
        let arguments = [written(state), only_read(words), only_read(from_ref(ack)), base];
        self.call("on_loss", self.functions.on_loss, arguments) as u32
    }

    /// Nothing is read where it cannot be.
    pub(crate) fn track(&self, state: &[u64], words: &[u64], ack: &Ack, reading: &mut TrackReading) {
        let arguments =
            [only_read(state), only_read(words), only_read(from_ref(ack)), written(from_mut(reading))];
        let _ = self.image.call(self.functions.track, arguments);
    }

    /// Nothing is drawn where it cannot be.
    pub(crate) fn picture(&self, state: &[u64], picture: &mut PictureRow) {
        let drawn = self.image.call(self.functions.picture, [only_read(state), written(from_mut(picture))]);
        let texts = [
            &mut picture.gauge,
            &mut picture.bars_title,
            &mut picture.bars_unit,
            &mut picture.phase,
            &mut picture.phase_names,
        ];
        for text in texts {
            *text = match self.image.text(*text as u64) {
                Some(found) if drawn.is_ok() && !text.is_null() => found.as_ptr().cast(),
                _ => std::ptr::null(),
            };
        }
    }
}

/// The structures that cross the seam, which are numbers without padding.
pub(crate) trait Plain: Copy {}
impl Plain for u64 {}
impl Plain for Ack {}
impl Plain for Verdict {}
impl Plain for TrackReading {}
impl Plain for PictureRow {}

fn only_read<T: Plain>(values: &[T]) -> Argument<'_> {
    // SAFETY: the same memory, for as long; of numbers every byte is set.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
    Argument::Memory(Bytes::Read(bytes))
}

fn written<T: Plain>(values: &mut [T]) -> Argument<'_> {
    // SAFETY: likewise, and whatever is written is a value of numbers.
    let bytes = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) };
    Argument::Memory(Bytes::Write(bytes))
}
