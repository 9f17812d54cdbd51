//! Parameter sets of what is attached: the slots that flows read.

use std::sync::atomic::{Ordering, fence};

use onramp_algorithm::{Algorithm, Parameters};

use crate::object::abi::{Attachment, PARAMETER_MAX, ParameterSlot, text};
use crate::object::level::Level;
use crate::pins::{LOCK_TIMEOUT, Lock, Pins, WaitWhile};
use crate::system::error::Error;
use crate::system::kernel;

/// A parameter set of an attached algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSet {
    /// Its number, by which flows and events identify it; 0: that of the attachment, others are named by rules.
    pub number: u32,
    /// Its name.
    pub profile: String,
    /// Raised by every change of a parameter.
    pub generation: u32,
    /// The values that flows read now.
    pub parameters: Parameters,
    /// Maximum telemetry level for its flows.
    pub telemetry_max: Level,
}

impl ParameterSet {
    /// Whether it has these values, and the same maximum telemetry level.
    pub fn has(&self, parameters: &Parameters, telemetry_max: Level) -> bool {
        self.parameters == *parameters && self.telemetry_max == telemetry_max
    }
}

/// The parameter sets of an attached algorithm.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::OtherBuild`], or a map that cannot be read.
pub fn parameter_sets(algorithm: Algorithm) -> Result<Vec<ParameterSet>, Error> {
    parameter_sets_while(algorithm, &|waited| waited < LOCK_TIMEOUT)
}

/// [`parameter_sets`], but waits for other commands as long as the caller is patient.
///
/// # Errors
/// As [`parameter_sets`], and [`Error::Locked`].
pub fn parameter_sets_while(algorithm: Algorithm, wait: WaitWhile<'_>) -> Result<Vec<ParameterSet>, Error> {
    let (_lock, pins) = hold_while(algorithm, wait)?;
    sets(&pins)
}

/// [`parameter_sets`] for a caller that holds the lock.
pub(crate) fn sets(pins: &Pins) -> Result<Vec<ParameterSet>, Error> {
    let attachment = pins.attachment()?;
    let slots = pins.parameter_slots()?;
    let slot = |index| slots.get(&index, 0).map_err(pins.failed("read", "params"));
    let slots: Vec<_> = (0..attachment.profiles).map(slot).collect::<Result<_, _>>()?;
    Ok(sets_in(pins.algorithm, &attachment, &slots))
}

/// The parameter sets that an attachment has in these slots.
pub(crate) fn sets_in(
    algorithm: Algorithm,
    attachment: &Attachment,
    slots: &[ParameterSlot],
) -> Vec<ParameterSet> {
    let all = (0..attachment.profiles).zip(&attachment.profile_names).zip(slots);
    let used = all.filter(|((number, name), _)| *number == 0 || **name != [0; 32]);
    used.map(|((number, name), slot)| read(algorithm, number, text(name), slot)).collect()
}

/// An algorithm that is attached wholly, and the lock under which it stays so: without it a command in progress would be
/// seen half done.
pub(crate) fn hold(algorithm: Algorithm) -> Result<(Lock, Pins), Error> {
    hold_while(algorithm, &|waited| waited < LOCK_TIMEOUT)
}

/// [`hold`], but waits for other commands as long as the caller is patient.
pub(crate) fn hold_while(algorithm: Algorithm, wait: WaitWhile<'_>) -> Result<(Lock, Pins), Error> {
    // Before the lock, which cannot be had where there is no BPF file system.
    if !Pins::new(algorithm).exist()? {
        return Err(Error::NotAttached { algorithm: algorithm.name() });
    }
    let lock = Lock::take_while(wait)?;
    Ok((lock, attached(algorithm)?))
}

/// The pins of an algorithm that is attached wholly, for a caller that holds the lock or does without those that a
/// command has in progress.
pub(crate) fn attached(algorithm: Algorithm) -> Result<Pins, Error> {
    let pins = Pins::new(algorithm);
    if !pins.exist()? {
        return Err(Error::NotAttached { algorithm: algorithm.name() });
    }
    if !pins.are_attached()? {
        return Err(pins.interrupted());
    }
    Ok(pins)
}

fn read(algorithm: Algorithm, number: u32, profile: String, slot: &ParameterSlot) -> ParameterSet {
    let words = &slot.sets[slot.active as usize & 1];
    let parameters = Parameters::from_words(algorithm, words).unwrap_or_else(|| algorithm.parameters());
    ParameterSet {
        number,
        profile,
        generation: slot.generation,
        parameters,
        telemetry_max: Level::from_number(slot.telemetry_max),
    }
}

/// Fills the set that flows do not read, then switches: a flow sees the old values or the new, never a mixture, and each with its
/// own generation, because both are in one word. The set to be filled is the one before last, which a flow may read still where
/// the command that switched has been killed since: so it waits for these first.
pub(crate) fn write(pins: &Pins, set: &ParameterSet) -> Result<(), Error> {
    let index = set.number;
    let failed = pins.failed("write", "params");
    let mut slots = pins.parameter_slots()?;
    let mut slot = slots.get(&index, 0).map_err(&failed)?;
    let spare = 1 - (slot.active & 1);
    slot.sets[spare as usize] = words(&set.parameters);
    kernel::await_readers();
    slots.set(index, slot, 0).map_err(&failed)?;
    slot.active = spare;
    slot.generation = set.generation;
    slot.telemetry_max = set.telemetry_max as u32;
    // On every processor the values come before the word that leads to them.
    fence(Ordering::SeqCst);
    slots.set(index, slot, 0).map_err(&failed)
}

/// Fills a set that no flow reads. Its generation goes on: number and generation identify the values that a flow had.
pub(crate) fn begin(
    pins: &Pins,
    number: u32,
    profile: &str,
    parameters: &Parameters,
    telemetry_max: Level,
) -> Result<(), Error> {
    let slot = pins.parameter_slots()?.get(&number, 0).map_err(pins.failed("read", "params"))?;
    write(
        pins,
        &ParameterSet {
            number,
            profile: profile.to_owned(),
            generation: slot.generation.wrapping_add(1),
            parameters: parameters.clone(),
            telemetry_max,
        },
    )
}

/// Parameters as a slot has them.
pub(crate) fn words(parameters: &Parameters) -> [u64; PARAMETER_MAX] {
    let mut words = [0; PARAMETER_MAX];
    for (to, from) in words.iter_mut().zip(parameters.to_words()) {
        *to = from;
    }
    words
}
