//! What is known about an algorithm without running it.

use crate::contract::{AlgorithmRow, TRAIT_ALWAYS, TRAIT_BASELINE, TRAIT_PACES};
use crate::ffi;
use crate::outside::{self, Outside};

/// One slow-start algorithm, of the registry or from outside the tree.
#[derive(Clone, Copy)]
pub struct Algorithm {
    pub(crate) row: &'static AlgorithmRow,
    pub(crate) outside: Option<&'static Outside>,
}

/// A name for why slow start went on or was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Name, in `snake_case`.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// A part of an algorithm's state worth showing: one or more `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name, in `snake_case`.
    pub name: &'static str,
    /// Unit; empty for a bare number.
    pub unit: &'static str,
    /// What it means.
    pub help: &'static str,
    offset: usize,
    count: usize,
}

impl Export {
    /// The values in an algorithm's state, in order; empty if `state` is too short to hold them.
    pub fn read(&self, state: &[u8]) -> Vec<u32> {
        let Some(bytes) = state.get(self.offset..self.offset + 4 * self.count) else { return Vec::new() };
        bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    /// The first of them; `None` where [`Export::read`] has none.
    pub fn read_first(&self, state: &[u8]) -> Option<u32> {
        let whole = state.get(self.offset..self.offset + 4 * self.count)?;
        whole.first_chunk().map(|word| u32::from_ne_bytes(*word))
    }
}

/// Every algorithm, in the order of the registry, and after them those from outside the tree that this process has read.
pub fn all() -> impl Iterator<Item = Algorithm> {
    let of_the_tree = ffi::rows().iter().map(Algorithm::of_row);
    of_the_tree.chain(outside::all().into_iter().map(Algorithm::from))
}

/// The algorithm of this name, or whose congestion control has it (`search`, `onramp_search`), or of the object at this path
/// ([`outside::open`], which says why there is none).
pub fn find(name: &str) -> Option<Algorithm> {
    if outside::is_path(name) {
        return outside::open(name.as_ref()).ok().map(Algorithm::from);
    }
    all().find(|algorithm| algorithm.name() == name).or_else(|| find_control(name))
}

/// The algorithm whose congestion control has this name.
pub fn find_control(name: &str) -> Option<Algorithm> {
    all().find(|algorithm| algorithm.congestion_control() == name)
}

/// The algorithm that is used when none is named (`DEFAULT_ALGORITHM`).
pub fn default() -> Algorithm {
    Algorithm::of_row(ffi::default_row())
}

/// The algorithm that decides slow starts of the kernel's own CUBIC (`CUBIC_ALGORITHM`).
pub fn of_cubic() -> Algorithm {
    Algorithm::of_row(ffi::cubic_row())
}

/// The first baseline of the registry: slow start until loss, ECN or timeout.
pub fn baseline() -> Algorithm {
    all().find(Algorithm::is_baseline).unwrap_or_else(default)
}

impl Algorithm {
    fn of_row(row: &'static AlgorithmRow) -> Self {
        Self { row, outside: None }
    }

    /// Its object, of one from outside the tree.
    pub fn outside(&self) -> Option<&'static Outside> {
        self.outside
    }

    /// Short name, as on the command line.
    pub fn name(&self) -> &'static str {
        ffi::text(self.row.name)
    }

    /// What a command line names it by in any process: its name, or the path of its object.
    pub fn argument(&self) -> String {
        self.outside.map_or_else(|| self.name().to_owned(), |outside| outside.origin().display().to_string())
    }

    /// Name of the congestion control in the kernel, at most 15 characters.
    pub fn congestion_control(&self) -> String {
        ffi::text(self.row.control).to_owned()
    }

    /// One line on what it does.
    pub fn about(&self) -> &'static str {
        ffi::text(self.row.about)
    }

    /// Where it comes from.
    pub fn source(&self) -> &'static str {
        ffi::text(self.row.source)
    }

    /// Its outcomes by number; numbers without a name are empty.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = Outcome> + use<> {
        ffi::slice(self.row.outcomes, self.row.outcome_count)
            .iter()
            .map(|row| Outcome { name: ffi::text(row.name), help: ffi::text(row.help) })
    }

    /// Name of the outcome with this number; empty if there is none.
    pub fn outcome_name(&self, outcome: u32) -> &'static str {
        self.outcomes().nth(outcome as usize).map_or("", |outcome| outcome.name)
    }

    /// What of its state is worth showing.
    pub fn exports(&self) -> impl ExactSizeIterator<Item = Export> + use<> {
        ffi::slice(self.row.exports, self.row.export_count).iter().map(|row| Export {
            // Of a member of a member the last name.
            name: ffi::text(row.name).rsplit('.').next().unwrap_or_default(),
            unit: ffi::text(row.unit),
            help: ffi::text(row.help),
            offset: row.offset as usize,
            count: row.count as usize,
        })
    }

    /// Whether it is asked outside slow start, too (`TRAIT_ALWAYS`).
    pub fn is_always_called(&self) -> bool {
        self.row.traits & TRAIT_ALWAYS != 0
    }

    /// Whether it looks at no signal of the path, so that others are compared with it (`TRAIT_BASELINE`).
    pub fn is_baseline(&self) -> bool {
        self.row.traits & TRAIT_BASELINE != 0
    }

    /// Whether it answers pacing rates (`TRAIT_PACES`).
    pub fn paces(&self) -> bool {
        self.row.traits & TRAIT_PACES != 0
    }

    /// What of the shell it needs, a bit each (`NAME_TRAITS`).
    pub fn traits(&self) -> u32 {
        self.row.traits
    }

    /// What of it crosses from the kernel by position only, a line each: parameters with what they may be, outcomes, and
    /// where exports lie in the state. Defaults, units and help may differ between two builds that understand each other.
    pub fn tables(&self) -> String {
        let mut text = format!("state {} {}\n", self.state_size(), self.kept_size());
        for one in self.declarations() {
            let choices = one.choices.join("|");
            text += &format!("parameter {} {} {} {choices}\n", one.name, one.minimum, one.maximum);
        }
        for outcome in self.outcomes() {
            text += &format!("outcome {}\n", outcome.name);
        }
        for Export { name, offset, count, .. } in self.exports() {
            text += &format!("export {name} {offset} {count}\n");
        }
        text
    }

    /// Bytes of all its state of a flow: what every flow keeps, and behind it what only flows with some parameters have.
    pub fn state_size(&self) -> usize {
        self.row.state_size as usize
    }

    /// Bytes of its state that every flow keeps.
    pub fn kept_size(&self) -> usize {
        self.row.kept_size as usize
    }
}

impl From<&'static Outside> for Algorithm {
    fn from(outside: &'static Outside) -> Self {
        Self { row: &outside.row, outside: Some(outside) }
    }
}

impl std::fmt::Debug for Algorithm {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Algorithm").field(&self.name()).finish()
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.row, other.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{TRAIT_EXTRA, outcome};

    #[test]
    fn every_name_fits_the_kernel_and_is_unique() {
        let names: Vec<_> = all().map(|algorithm| algorithm.congestion_control()).collect();
        for name in &names {
            assert!(name.len() <= 15 && !name.contains('-'), "{name}");
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn baselines_end_no_slow_start_unless_set_and_neither_the_default_nor_cubics_is_one() {
        assert!(!default().is_baseline() && !of_cubic().is_baseline());
        assert_eq!(baseline().declarations().len(), 0);
        for algorithm in all().filter(Algorithm::is_baseline) {
            let mut flow = crate::Flow::new(algorithm.parameters());
            let ack = crate::Ack { cwnd: u32::MAX, acked: 1, mss: 1_500, ..crate::Ack::default() };
            assert_eq!(flow.on_ack(&ack), crate::Verdict::default(), "{algorithm:?}");
        }
    }

    #[test]
    fn common_outcomes_have_the_numbers_that_the_contract_gives_them() {
        for algorithm in all() {
            assert_eq!(algorithm.outcome_name(outcome::GROW), "grow");
            assert_eq!(algorithm.outcome_name(outcome::EXIT), "exit");
            assert_eq!(algorithm.outcome_name(outcome::NO_RTT_SAMPLE), "no_rtt_sample");
            assert_eq!(algorithm.outcome_name(outcome::APP_LIMITED), "app_limited");
            assert_eq!(algorithm.outcome_name(outcome::WARMING_UP), "warming_up");
            assert_eq!(algorithm.outcome_name(outcome::BELOW_THRESHOLD), "below_threshold");
        }
    }

    #[test]
    fn the_tables_say_what_is_reported_by_position_and_distinguish_all_algorithms() {
        let tables: Vec<_> = all().map(|algorithm| algorithm.tables()).collect();
        for (algorithm, text) in all().zip(&tables) {
            assert_eq!(tables.iter().filter(|other| *other == text).count(), 1, "{algorithm:?}");
            let lines = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
            assert_eq!(lines("parameter "), algorithm.declarations().len());
            assert_eq!(lines("outcome "), algorithm.outcomes().len());
            assert_eq!(lines("export "), algorithm.exports().len());
        }
        let search = find("search").unwrap().tables();
        assert!(search.contains("parameter look_back 0 2 latest|smoothed|min\n"), "{search}");
        assert!(search.contains("outcome grow\n"), "{search}");
    }

    #[test]
    fn a_state_is_what_every_flow_keeps_and_with_the_trait_a_second_part_behind_it() {
        for algorithm in all() {
            let (whole, kept) = (algorithm.state_size(), algorithm.kept_size());
            assert_eq!(whole > kept, algorithm.row.traits & TRAIT_EXTRA != 0, "{algorithm:?}");
            assert!(whole >= kept && whole % 8 == 0 && kept % 8 == 0, "{algorithm:?} {whole} {kept}");
        }
        let sizes = |name| find(name).map(|one| (one.kept_size(), one.state_size() - one.kept_size()));
        assert_eq!(sizes("search"), Some((248, 144)));
        assert_eq!(sizes("best"), Some((160, 0)));
        assert_eq!(sizes("spacing"), Some((152, 0)));
    }

    #[test]
    fn every_default_lies_in_its_range_and_every_export_in_the_state() {
        for algorithm in all() {
            for parameter in algorithm.declarations() {
                assert!(
                    (parameter.minimum..=parameter.maximum).contains(&parameter.default),
                    "{algorithm:?} {}",
                    parameter.name
                );
                assert!(
                    parameter.choices.is_empty() || parameter.choices.len() as u64 == parameter.maximum + 1
                );
            }
            // Of the part that every flow keeps.
            let state = vec![0; algorithm.kept_size()];
            for export in algorithm.exports() {
                assert_eq!(export.read(&state).len(), export.count, "{algorithm:?} {}", export.name);
                assert!(export.read(&state[..export.offset]).is_empty());
            }
        }
    }
}
