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

    /// A flow under way, from the state that the kernel keeps of it; `None` if that is not of the algorithm's size.
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

    /// One acknowledgement in slow start.
    ///
    /// # Panics
    /// If `ack.mss` is 0, which no driver delivers.
    pub fn on_ack(&mut self, ack: &Ack) -> Verdict {
        assert_ne!(ack.mss, 0, "an ACK without a segment size");
        let on_ack = filled(self.algorithm().row.on_ack);
        let mut verdict = Verdict::default();
        // SAFETY: state as in `restart`; `words` holds one u64 per parameter (at least one); both structs are made of
        // the headers that the C code was compiled with.
        unsafe { on_ack(self.state_pointer(), self.words.as_ptr().cast(), ack, &raw mut verdict) }
        verdict
    }

    /// Slow start is left by loss: the threshold, given the base's own in segments.
    pub fn on_loss(&mut self, ack: &Ack, base_ssthresh: u32) -> u32 {
        let on_loss = filled(self.algorithm().row.on_loss);
        // SAFETY: as in `on_ack`.
        unsafe { on_loss(self.state_pointer(), self.words.as_ptr().cast(), ack, base_ssthresh) }
    }

    /// The values of one export of the algorithm's state; empty if it has none of this name.
    pub fn export(&self, name: &str) -> Vec<u32> {
        let bytes: Vec<u8> = self.state.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let export: Option<Export> = self.algorithm().exports().find(|export| export.name == name);
        export.map_or_else(Vec::new, |export| export.read(&bytes))
    }

    fn state_pointer(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }
}
