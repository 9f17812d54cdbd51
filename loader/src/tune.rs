//! Parameters of what is attached: reading them, and changing them under running flows.

use std::time::Duration;

use onramp_algorithm::{Algorithm, Parameters};

use crate::abi::{Attachment, PARAMETER_MAX, ParameterSlot, text};
use crate::error::Error;
use crate::kernel;
use crate::pins::{LOCK_PATIENCE, Lock, Patience, Pins};
use crate::select::Profile;
use crate::telemetry::{Level, Shared};

/// A parameter set of an attached algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSet {
    /// Its number, by which flows and events tell it; 0: that of the attachment, others are named by rules.
    pub number: u32,
    /// Its name.
    pub profile: String,
    /// Raised by every change of a parameter.
    pub generation: u32,
    /// The values that flows read now.
    pub parameters: Parameters,
    /// The most that consumers of telemetry are told of its flows.
    pub telemetry_max: Level,
}

impl ParameterSet {
    /// Whether it has these values, and its flows are told of as much.
    pub fn has(&self, parameters: &Parameters, telemetry_max: Level) -> bool {
        self.parameters == *parameters && self.telemetry_max == telemetry_max
    }
}

/// What to change of a parameter set; all else stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// Parameters, as `name=value`.
    pub settings: &'a [String],
    /// The most that consumers of telemetry are told of its flows, whatever they want; [`Level::Ack`]: all they want.
    pub telemetry_max: Option<Level>,
    /// How long to wait for other commands; by default a minute.
    pub patience: Option<Duration>,
}

/// What a change did.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The set before.
    pub before: ParameterSet,
    /// The set now; for a dry run what it would be, with the generation that it has.
    pub after: ParameterSet,
}

/// The parameter sets of an attached algorithm.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::OtherBuild`], or a map that cannot be read.
pub fn parameter_sets(algorithm: Algorithm) -> Result<Vec<ParameterSet>, Error> {
    parameter_sets_while(algorithm, &|waited| waited < LOCK_PATIENCE)
}

/// [`parameter_sets`], but waits for other commands as long as the caller is patient.
///
/// # Errors
/// As [`parameter_sets`], and [`Error::Locked`].
pub fn parameter_sets_while(
    algorithm: Algorithm,
    patience: Patience<'_>,
) -> Result<Vec<ParameterSet>, Error> {
    let (_lock, pins) = hold_while(algorithm, patience)?;
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

/// Changes one parameter set (`None`: the first), all that is asked for or nothing. Running flows read the new values
/// with their next ACK, and what may be told of them; what an algorithm latches when slow start begins, new slow starts
/// read.
///
/// # Errors
/// [`Error::NotAttached`], [`Error::UnknownProfile`], [`Error::Parameter`], [`Error::OtherBuild`]; nothing is changed
/// then.
pub fn tune(
    algorithm: Algorithm,
    profile: Option<&str>,
    changes: &Changes<'_>,
    dry_run: bool,
) -> Result<Tuned, Error> {
    kernel::require_privilege("tune")?;
    let patience = changes.patience.unwrap_or(LOCK_PATIENCE);
    let (_lock, pins) = hold_while(algorithm, &|waited| waited < patience)?;
    let sets = sets(&pins)?;
    let before = find(algorithm, &sets, profile)?.clone();
    let mut after = before.clone();
    after.parameters.assign(changes.settings)?;
    after.telemetry_max = changes.telemetry_max.unwrap_or(before.telemetry_max);
    if !dry_run && after != before {
        let telemetry = if after.telemetry_max == before.telemetry_max { None } else { Shared::open()? };
        if after.parameters != before.parameters {
            after.generation = before.generation.wrapping_add(1);
        }
        write(&pins, &after)?;
        if let Some(telemetry) = telemetry {
            telemetry.announce();
        }
    }
    Ok(Tuned { before, after })
}

/// A parameter set by its name; `None`: the first.
fn find<'a>(
    algorithm: Algorithm,
    sets: &'a [ParameterSet],
    profile: Option<&str>,
) -> Result<&'a ParameterSet, Error> {
    let found = sets.iter().find(|set| profile.is_none_or(|name| set.profile == name));
    found.ok_or_else(|| Error::UnknownProfile {
        algorithm: algorithm.name(),
        profile: profile.unwrap_or_default().into(),
        known: sets.iter().map(|set| set.profile.clone()).collect::<Vec<_>>().join(", "),
    })
}

/// An algorithm that is attached wholly, and the lock under which it stays so: without it a command under way would be
/// seen half done.
pub(crate) fn hold(algorithm: Algorithm) -> Result<(Lock, Pins), Error> {
    hold_while(algorithm, &|waited| waited < LOCK_PATIENCE)
}

/// [`hold`], but waits for other commands as long as the caller is patient.
fn hold_while(algorithm: Algorithm, patience: Patience<'_>) -> Result<(Lock, Pins), Error> {
    // Before the lock, which cannot be had where there is no BPF file system.
    if !Pins::of(algorithm).exist() {
        return Err(Error::NotAttached { algorithm: algorithm.name() });
    }
    let lock = Lock::take_while(patience)?;
    Ok((lock, attached(algorithm)?))
}

/// The pins of an algorithm that is attached wholly, for a caller that holds the lock or does without those that a
/// command has under way.
pub(crate) fn attached(algorithm: Algorithm) -> Result<Pins, Error> {
    let pins = Pins::of(algorithm);
    if !pins.exist() {
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

/// Fills the set that flows do not read, then switches, and waits until no flow reads the old one, which the next change fills:
/// a flow sees the old values or the new, never a mixture.
fn write(pins: &Pins, set: &ParameterSet) -> Result<(), Error> {
    let index = set.number;
    let failed = pins.failed("write", "params");
    let mut slots = pins.parameter_slots()?;
    let mut slot = slots.get(&index, 0).map_err(&failed)?;
    let spare = 1 - (slot.active & 1);
    slot.sets[spare as usize] = words(&set.parameters);
    slots.set(index, slot, 0).map_err(&failed)?;
    slot.active = spare;
    slot.generation = set.generation;
    slot.telemetry_max = set.telemetry_max as u32;
    slots.set(index, slot, 0).map_err(&failed)?;
    kernel::await_readers();
    Ok(())
}

/// Fills a set that no flow reads. Its generation goes on, for flows told of a number and a generation what they had.
pub(crate) fn begin(pins: &Pins, number: u32, profile: &Profile) -> Result<(), Error> {
    let slot = pins.parameter_slots()?.get(&number, 0).map_err(pins.failed("read", "params"))?;
    write(
        pins,
        &ParameterSet {
            number,
            profile: profile.name.clone(),
            generation: slot.generation.wrapping_add(1),
            parameters: profile.parameters.clone(),
            telemetry_max: profile.telemetry_max,
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
