//! Live and replayed alike: what the kernel's algorithm answered to each ACK, the host build answers too.

use std::time::Duration;

use onramp_loader::AttachOptions;
use onramp_loader::algorithm::{self, Flow};
use onramp_loader::telemetry::{Event, Item, Level, What};
use onramp_tests::Attachments;
use onramp_tests::sender::Sender;
use onramp_tests::telemetry::{events, stream, until_ended};
use onramp_tests::traffic::eventually;
use onramp_tests::wire::{Data, Fate, Wire};

/// Verdicts and thresholds compared; fails at the first that differs.
fn replay(events: &[&Event]) -> usize {
    let mut flow: Option<Flow> = None;
    let mut compared = 0;
    for event in events {
        match (&event.what, &mut flow) {
            (What::Flow(reported), None) => flow = Flow::resume(reported.parameters.clone(), &reported.state),
            (What::Flow(reported), Some(flow)) => flow.tune(reported.parameters.clone()),
            (What::Restart(_), Some(flow)) => flow.restart(),
            (What::Ack(reported), Some(flow)) => {
                if let Some(verdict) = reported.answer() {
                    assert_eq!(flow.on_ack(&reported.ack), verdict, "event {}: {reported:?}", event.sequence);
                    compared += 1;
                }
            }
            (What::Loss(reported), Some(flow)) if reported.called != 0 => {
                assert_eq!(
                    flow.on_loss(&reported.ack, reported.base_ssthresh),
                    reported.ssthresh,
                    "{reported:?}"
                );
                compared += 1;
            }
            _ => {}
        }
    }
    compared
}

#[test]
#[ignore = "in a guest: make test"]
fn recorded_acknowledgments_give_the_same_verdicts_again() {
    let attachments = Attachments::lock();
    // With a second part of its state, too.
    let mut paced = algorithm::find("search").unwrap().parameters();
    paced.set("pacing", "on").unwrap();
    for parameters in algorithm::all().map(|one| one.parameters()).chain([paced]) {
        let algorithm = parameters.algorithm();
        attachments.attach(&AttachOptions::new(parameters));
        let mut early = stream(Level::Ack);
        let fate = |data: Data| if data.number == 400 { Fate::Drop } else { Fate::Deliver };
        let mut sender =
            Sender::connect(Wire::lay(Duration::from_millis(15), fate), &algorithm.congestion_control());
        sender.send(100_000);
        assert!(eventually(|| sender.flow().info.bytes_acked > 60_000));
        // Comes in the middle and goes on from the state that it gets.
        let mut late = stream(Level::Ack);
        sender.send(900_000);
        sender.flow_when(|flow| flow.info.bytes_acked >= 1_000_000);
        drop(sender);
        let (whole, part) = (until_ended(&mut early, 1), until_ended(&mut late, 1));
        assert!(!whole.iter().chain(&part).any(|item| matches!(item, Item::Lost(_))));
        let (whole, part) = (replay(&events(&whole)), replay(&events(&part)));
        println!("{}: {whole} verdicts, {part} of them from the middle on", algorithm.name());
        assert!(whole > 20 && whole > part, "{algorithm:?}: {whole} {part}");
        drop((early, late));
        onramp_loader::detach(algorithm, false).unwrap();
    }
}
