//! Live and replayed alike: what the kernel's algorithm and shell did at each event, the host build does too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use onramp_loader::abi::{ExitRecord, FlowHeader, flow_flag};
use onramp_loader::algorithm::shell::Shell;
use onramp_loader::algorithm::{
    self, AckPayload, CongestionState, Flow, LossPayload, RestartPayload, Sock, StartPolicies, UndoPayload,
};
use onramp_loader::telemetry::{EndEvent, Event, FlowEvent, Item, Level, StateEvent, What};
use onramp_loader::{AttachOptions, ExitReason};
use onramp_tests::Attachments;
use onramp_tests::bottleneck::bottleneck;
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, Fate, Wire};

/// One way.
const DELAY: Duration = Duration::from_millis(15);

/// What the kernel's shell keeps of a flow, as the host's has it.
fn on_the_host(header: &FlowHeader) -> algorithm::FlowHeader {
    let FlowHeader { start_us, exit, generation, undo_limit, flags, slow_starts, profile, unused } = *header;
    algorithm::FlowHeader { start_us, exit, generation, undo_limit, flags, slow_starts, profile, unused }
}

/// A flow run again by its events: its algorithm, and the shell over a sender as each event shows it.
struct Replayed {
    flow: Flow,
    shell: Shell,
    sock: Sock,
    /// By the last restart.
    slow_starts: u32,
    /// The exit whose record is complete, unless it was undone.
    exit: Option<ExitRecord>,
    /// All of them.
    exits: Vec<ExitRecord>,
    undone: usize,
    /// Verdicts and thresholds that were compared.
    compared: usize,
}

impl Replayed {
    /// From what is reported of it, before the ACK that it is reported with.
    fn new(reported: &FlowEvent) -> Self {
        let flow = Flow::resume(reported.parameters.clone(), &reported.state).expect("a state of its size");
        let mut replayed = Self {
            shell: Shell::resumed(flow.algorithm().traits(), on_the_host(&reported.header)),
            flow,
            sock: Sock::default(),
            slow_starts: reported.header.slow_starts.into(),
            exit: None,
            exits: Vec::new(),
            undone: 0,
            compared: 0,
        };
        replayed.exit = replayed.complete_exit();
        replayed
    }

    fn complete_exit(&self) -> Option<ExitRecord> {
        self.shell.exit().map(|(_, exit)| *exit).filter(|exit| exit.window_after != 0)
    }

    /// Whether an exit record has been completed since the last call.
    fn note_exit(&mut self) -> bool {
        let exit = self.complete_exit();
        let completed = exit.filter(|_| exit != self.exit);
        self.exits.extend(completed);
        self.exit = exit;
        completed.is_some()
    }

    /// Since the last event the base has grown the window, perhaps to the threshold.
    fn grow(&mut self, cwnd: u32, ssthresh: u32) {
        self.shell.grow(&mut self.sock, 1, |sock, _| (sock.cwnd, sock.ssthresh) = (cwnd, ssthresh));
        self.note_exit();
    }

    fn ack(&mut self, reported: &AckPayload) {
        let ack = &reported.ack;
        self.grow(ack.cwnd, ack.ssthresh);
        let Sock { state, in_doubt, .. } = self.sock;
        self.sock = Sock { state, in_doubt, ..Sock::seen(ack) };
        let sample = u32::try_from(ack.rtt_us).ok();
        let verdict = self.shell.acked(&mut self.sock, ack.acked, sample, &mut self.flow);
        assert_eq!(verdict, reported.answer(), "{reported:?} {:?}", self.sock);
        let unreported = if self.note_exit() { flow_flag::EXIT_UNREPORTED } else { 0 };
        assert_eq!(
            u32::from(self.shell.header().flags) | unreported,
            u32::from(reported.flags),
            "{reported:?} {:?}",
            self.sock
        );
        assert_eq!(u32::from(self.shell.slow_starts()), self.slow_starts, "{reported:?}");
        self.compared += usize::from(verdict.is_some());
    }

    fn loss(&mut self, reported: &LossPayload) {
        self.grow(reported.ack.cwnd, reported.ack.ssthresh);
        let Sock { state, in_doubt, .. } = self.sock;
        self.sock = Sock { state, in_doubt, ..Sock::seen(&reported.ack) };
        let reduction = self.shell.reduced(&mut self.sock, reported.base_ssthresh, &mut self.flow);
        assert_eq!(reduction.called, reported.called != 0, "{reported:?}");
        assert_eq!(reduction.ssthresh, reported.ssthresh, "{reported:?}");
        self.sock.ssthresh = reported.ssthresh;
        self.compared += usize::from(reduction.called);
    }

    fn state(&mut self, reported: &StateEvent) {
        assert_eq!(self.sock.state, reported.from as u32, "{reported:?}");
        self.shell.state(&mut self.sock, reported.to as u32);
        self.come_to(reported.to);
        self.note_exit();
    }

    /// In this state, in which slow start has not begun anew.
    fn come_to(&mut self, state: CongestionState) {
        self.sock.state = state as u32;
        self.sock.in_doubt = u32::from(state == CongestionState::Loss);
    }

    /// After a timeout that can no longer prove spurious; or after an idle time, which is not reported.
    fn restart(&mut self, reported: &RestartPayload) {
        self.shell.idle();
        self.sock.in_doubt = 0;
        self.slow_starts = reported.slow_starts;
    }

    fn undo(&mut self, reported: &UndoPayload) {
        let recorded = self.shell.exit().is_some();
        self.sock.cwnd = reported.cwnd;
        assert_eq!(self.shell.undo(&mut self.sock, reported.restored), reported.restored);
        assert_eq!(recorded && self.shell.exit().is_none(), reported.exit_undone != 0, "{reported:?}");
        self.sock.cwnd = reported.restored;
        self.undone += usize::from(reported.exit_undone != 0);
        self.note_exit();
    }

    fn end(&mut self, reported: &EndEvent) {
        self.grow(reported.cwnd, reported.ssthresh);
        // The host's shell does not keep which parameters it was called with.
        let header = algorithm::FlowHeader { generation: reported.header.generation, ..*self.shell.header() };
        assert_eq!(header, on_the_host(&reported.header));
    }
}

/// Runs a flow again by its events. Fails at the first verdict, threshold, flag or undo that differs, and where the exits do.
fn replay(events: &[&Event]) -> Replayed {
    let Some(What::Flow(first)) = events.first().map(|event| &event.what) else { panic!("no flow") };
    let mut replayed = Replayed::new(first);
    // A flow event does not say which state the flow is in; the next change does.
    let from = |event: &&Event| if let What::State(change) = &event.what { Some(change.from) } else { None };
    replayed.come_to(events.iter().find_map(from).unwrap_or(CongestionState::Open));
    let mut exits = Vec::new();
    for event in &events[1..] {
        match &event.what {
            What::Flow(reported) => replayed.flow.tune(reported.parameters.clone()),
            What::Restart(reported) => replayed.restart(reported),
            What::Ack(reported) => replayed.ack(reported),
            What::Loss(reported) => replayed.loss(reported),
            What::State(reported) => replayed.state(reported),
            What::Undo(reported) => replayed.undo(reported),
            What::Exit(reported) => exits.push(reported.record),
            What::End(reported) => replayed.end(reported),
            What::Round(_) => {}
        }
    }
    assert_eq!(replayed.exits, exits);
    replayed
}

/// One segment is lost.
fn a_loss(data: Data) -> Fate {
    if data.number == 400 { Fate::Drop } else { Fate::Deliver }
}

/// A segment that comes late looks lost. Later a queue overflows, and the path is silent for longer than the timeout.
fn many_events() -> impl FnMut(Data) -> Fate + Send + 'static {
    let (mut queue, mut silent) = (bottleneck(1_500_000, 60), None);
    move |data| {
        if data.number == 900 {
            silent.get_or_insert_with(|| Instant::now() + Duration::from_millis(300));
        }
        match data.number {
            60 => Fate::HoldBack(Duration::from_millis(45)),
            _ if silent.is_some_and(|until| Instant::now() < until) => Fate::Drop,
            _ => queue(data),
        }
    }
}

/// A flow over a wire, with an idle time before the last data: its events for a consumer that is there from the start, and
/// for one that comes in the middle.
fn followed(control: &str, fate: impl FnMut(Data) -> Fate + Send + 'static) -> [Vec<Item>; 2] {
    let mut early = stream(Level::Ack);
    let mut sender = Sender::connect(Wire::lay(DELAY, fate), control);
    sender.send(100_000);
    assert!(eventually(|| sender.flow().info.bytes_acked > 60_000));
    // Goes on from the state that it gets.
    let mut late = stream(Level::Ack);
    sender.deliver(1_400_000);
    std::thread::sleep(Duration::from_millis(900));
    sender.deliver(300_000);
    drop(sender);
    let followed = [until_ended(&mut early, 1), until_ended(&mut late, 1)];
    assert!(!followed.iter().flatten().any(|item| matches!(item, Item::Lost(_))));
    followed
}

#[test]
#[ignore = "in a guest: make test"]
fn what_is_recorded_gives_the_same_verdicts_flags_and_exits_again() {
    let attachments = Attachments::lock();
    // With a second part of its state, too.
    let mut paced = algorithm::find("search").unwrap().parameters();
    paced.set("pacing", "on").unwrap();
    let (mut exits, mut undone, mut slow_starts) = (BTreeMap::new(), 0, 0);
    for parameters in algorithm::all().map(|one| one.parameters()).chain([paced]) {
        let algorithm = parameters.algorithm();
        // A start of the shell's own is not replayed.
        let start = Some(StartPolicies::default());
        attachments.attach(&AttachOptions { start, ..AttachOptions::new(parameters) });
        let control = algorithm.congestion_control();
        for items in [followed(&control, a_loss), followed(&control, many_events())] {
            let [whole, part] = items.map(|items| replay(&events(&items)));
            let (verdicts, later) = (whole.compared, part.compared);
            println!("{}: {verdicts} verdicts, {later} of them from the middle on", algorithm.name());
            assert!(verdicts > 20 && verdicts > later, "{algorithm:?}: {verdicts} {later}");
            for exit in &whole.exits {
                *exits.entry(ExitReason::from_number(exit.reason.into())).or_insert(0) += 1;
            }
            undone += whole.undone;
            slow_starts += whole.slow_starts;
        }
        onramp_loader::detach(algorithm, false).unwrap();
    }
    println!("{exits:?}, {undone} undone, {slow_starts} slow starts");
    for reason in [ExitReason::Algorithm, ExitReason::Loss] {
        assert!(exits.contains_key(&Some(reason)), "{exits:?}");
    }
    assert!(undone > 0 && slow_starts > 22, "{undone} exits undone, {slow_starts} slow starts");
}
