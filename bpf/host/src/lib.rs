//! The slow-start algorithms of `bpf/algorithm`, compiled for the host from the headers that also make the BPF objects.
//!
//! Everything known about an algorithm (its parameters, outcomes and exports) is read from its header's own
//! declarations, so there is one source for the kernel, for validation, for listings and for tests.
//!
//! ```
//! use onramp_algorithm::{Ack, Flow, find, outcome};
//!
//! let fixed = find("fixed").expect("always there");
//! let mut parameters = fixed.parameters();
//! parameters.set("exit_window_bytes", "100000")?;
//! let mut flow = Flow::new(parameters);
//! let ack = Ack { cwnd: 100, mss: 1000, ..Ack::default() };
//! assert_eq!(flow.on_ack(&ack).outcome, outcome::EXIT);
//! # Ok::<(), onramp_algorithm::ParameterError>(())
//! ```

mod algorithm;
mod contract;
mod ffi;
mod flow;
pub mod guard;
mod open_loop;
mod options;
pub mod outside;
mod parameters;
pub mod ramp;
mod records;
pub mod shell;
mod shown;
mod similar;

pub use algorithm::{Algorithm, Export, Outcome, all, baseline, default, find, find_control, of_cubic};
pub use contract::{
    ABI_VERSION, Ack, AckPayload, EndPayload, ExitRecord, Fast, FlowCounts, FlowHeader, INITIAL_WINDOW,
    LossPayload, MIN_WINDOW, NO_THRESHOLD, OUTCOME_MAX, Path, RestartPayload, RoundPayload, Sock, Start,
    StartupStep, StatePayload, Suss, TRAIT_PACES, UndoPayload, Verdict, ack_flag, fast_end, fast_phase,
    growth, outcome, start_end, start_phase, startup, suss_end,
};
pub use flow::Flow;
pub use open_loop::{OpenLoop, Stage};
pub use options::{AfterExitOptions, Named, Options, StartPolicies};
pub use parameters::{Parameter, ParameterError, Parameters};
pub use records::{AfterExit, CongestionState, EventKind, ExitReason, StartEnd, StartPhase, StartPolicy};
pub use shown::{Bars, Gauge, Phase, Picture, Reading, Track};
pub use similar::{did_you_mean, similar};
