//! One flow driven by an algorithm, outside any kernel.

use std::ffi::c_void;

use crate::algorithm::{Algorithm, Export};
use crate::contract::{Ack, Verdict};
use crate::ffi::filled;
use crate::parameters::Parameters;

/// The state of one flow and the parameters it reads. Pure: the same ACKs give the same verdicts.
#[derive(Clone, Debug)]
pub struct Flow {
    parameters: Parameters,
    words: Vec<u64>,
    // u64 for its alignment, which is the largest that any state needs.
    state: Vec<u64>,
}

impl Flow {
    /// A flow at the start of its first slow start.
    pub fn new(parameters: Parameters) -> Self {
        let state = vec![0; parameters.algorithm().state_size().div_ceil(8)];
        let mut flow = Self { words: parameters.to_words(), parameters, state };
        flow.restart();
        flow
    }

    /// A open flow, from the state that the kernel keeps of it; `None` if that is not of the algorithm's size.
    pub fn resume(parameters: Parameters, state: &[u8]) -> Option<Self> {
        if state.len() != parameters.algorithm().state_size() {
            return None;
        }
        let mut flow = Self::new(parameters);
        for (word, bytes) in flow.state.iter_mut().zip(state.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        Some(flow)
    }

    /// The algorithm that drives it.
    pub fn algorithm(&self) -> Algorithm {
        self.parameters.algorithm()
    }

    /// Slow start begins anew: after a timeout or an idle period.
    pub fn restart(&mut self) {
        if let Some(outside) = self.algorithm().outside {
            return outside.restart(&mut self.state);
        }
        let restart = filled(self.algorithm().row.restart);
        // SAFETY: `state` has the size that the row states and the alignment of u64.
        unsafe { restart(self.state_pointer()) }
    }

    /// Replaces the parameters under the running flow, as tuning does.
    ///
    /// # Panics
    /// If they belong to another algorithm.
    pub fn tune(&mut self, parameters: Parameters) {
        assert_eq!(parameters.algorithm(), self.algorithm(), "parameters of another algorithm");
        self.words = parameters.to_words();
        self.parameters = parameters;
    }

    /// One acknowledgment in slow start.
    ///
    /// # Panics
    /// If `ack.mss` is 0, which no driver delivers.
    pub fn on_ack(&mut self, ack: &Ack) -> Verdict {
        assert_ne!(ack.mss, 0, "an ACK without a segment size");
        let mut verdict = Verdict::default();
        if let Some(outside) = self.algorithm().outside {
            outside.on_ack(&mut self.state, &self.words, ack, &mut verdict);
            return verdict;
        }
        let on_ack = filled(self.algorithm().row.on_ack);
        // SAFETY: state as in `restart`; `words` holds one u64 per parameter (at least one); both structs are made of
        // the headers that the C code was compiled with.
        unsafe { on_ack(self.state_pointer(), self.words.as_ptr().cast(), ack, &raw mut verdict) }
        verdict
    }

    /// Slow start is left by loss: the threshold, given the base's own in segments.
    pub fn on_loss(&mut self, ack: &Ack, base_ssthresh: u32) -> u32 {
        if let Some(outside) = self.algorithm().outside {
            return outside.on_loss(&mut self.state, &self.words, ack, base_ssthresh);
        }
        let on_loss = filled(self.algorithm().row.on_loss);
        // SAFETY: as in `on_ack`.
        unsafe { on_loss(self.state_pointer(), self.words.as_ptr().cast(), ack, base_ssthresh) }
    }

    /// The values of one export of the algorithm's state; empty if it has none of this name.
    pub fn export(&self, name: &str) -> Vec<u32> {
        let export: Option<Export> = self.algorithm().exports().find(|export| export.name == name);
        export.map_or_else(Vec::new, |export| export.read(&self.state()))
    }

    /// The algorithm's state, as [`Flow::resume`] takes it.
    pub fn state(&self) -> Vec<u8> {
        let bytes = self.state.iter().flat_map(|word| word.to_ne_bytes());
        bytes.take(self.algorithm().state_size()).collect()
    }

    fn state_pointer(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{all, find};

    /// ACKs of rounds that double, at the rate of a bottleneck of 10 MB/s with an RTT of 100 ms.
    fn acks() -> Vec<Ack> {
        let mut ack = Ack {
            now_us: 1_000_000,
            bytes_acked: 1,
            rtt_us: 100_000,
            smoothed_rtt_us: 100_000,
            min_rtt_us: 100_000,
            mss: 1_000,
            ssthresh: u32::MAX,
            ..Ack::default()
        };
        let mut acks = Vec::new();
        for round in 0..7 {
            let segments = 40 << round;
            ack.cwnd = segments;
            ack.bytes_outstanding = 1_000 * segments;
            ack.now_us += 50_000;
            ack.rtt_us = 100_000;
            for _ in 0..segments {
                ack.now_us += 100;
                ack.bytes_acked += 1_000;
                ack.bytes_sent = ack.bytes_acked + u64::from(ack.bytes_outstanding);
                ack.rtt_us += 50;
                ack.acked = 1;
                acks.push(ack);
            }
        }
        acks
    }

    fn search(pacing: &str) -> Parameters {
        let mut parameters = find("search").unwrap().parameters();
        parameters.set("pacing", pacing).unwrap();
        parameters
    }

    fn after(acks: &[Ack], parameters: Parameters) -> Flow {
        let mut flow = Flow::new(parameters);
        for ack in acks {
            flow.on_ack(ack);
        }
        flow
    }

    fn bytes(flow: &Flow) -> Vec<u8> {
        flow.state.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_state_of_another_size_is_refused() {
        for algorithm in all() {
            let (whole, kept) = (algorithm.state_size(), algorithm.kept_size());
            let resume = |size: usize| Flow::resume(algorithm.parameters(), &vec![0; size]);
            assert!(resume(whole).is_some(), "{algorithm:?}");
            for size in [0, 8, whole - 8, whole - 1, whole + 1, whole + 8, kept] {
                assert_eq!(resume(size).is_some(), size == whole, "{algorithm:?} {size}");
            }
        }
    }

    #[test]
    fn only_flows_whose_parameters_want_it_use_the_second_part_and_the_first_is_the_same_without() {
        let kept = find("search").unwrap().kept_size();
        let (mut without, mut with) = (Flow::new(search("off")), Flow::new(search("on")));
        let mut paced_acks = 0;
        for ack in acks() {
            let (plain, paced) = (without.on_ack(&ack), with.on_ack(&ack));
            assert_eq!(plain, Verdict { pacing_rate: 0, ..paced });
            paced_acks += u32::from(paced.pacing_rate > 0);
            let (without, with) = (bytes(&without), bytes(&with));
            assert_eq!(without[..kept], with[..kept]);
            assert!(without[kept..].iter().all(|byte| *byte == 0));
            assert!(with[kept..].iter().any(|byte| *byte != 0));
        }
        assert!(paced_acks > 1_000, "{paced_acks}");
    }

    #[test]
    fn a_flow_goes_on_from_its_state_as_it_would_have() {
        for pacing in ["off", "on"] {
            let acks = acks();
            for cut in (0..acks.len()).step_by(97) {
                let mut flow = after(&acks[..cut], search(pacing));
                let mut resumed = Flow::resume(search(pacing), &bytes(&flow)).unwrap();
                assert!(
                    acks[cut..].iter().all(|ack| flow.on_ack(ack) == resumed.on_ack(ack)),
                    "{pacing} {cut}"
                );
            }
        }
    }

    #[test]
    fn a_second_part_of_zeros_is_as_good_as_one_restarted() {
        let kept = find("search").unwrap().kept_size();
        let acks = acks();
        for at in (0..acks.len()).step_by(97) {
            let mut flow = after(&acks[..at], search("on"));
            flow.restart();
            let mut state = bytes(&flow);
            state[kept..].fill(0);
            let mut other = Flow::resume(search("on"), &state).unwrap();
            assert!(acks[at..].iter().all(|ack| flow.on_ack(ack) == other.on_ack(ack)), "{at}");
        }
    }
}
