// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prints what happens to flows until interrupted: `cargo run -p onramp-loader --example events [exit|round|ack]`, as
//! root, while something sends over an attached algorithm.

use onramp_loader::telemetry::{Event, Item, Level, Options, Stream, What};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "exit".into());
    let level = Level::find(&name).ok_or("the level is one of off, exit, round, ack")?;
    let mut stream = Stream::open(&Options::new("example", level))?;
    loop {
        let item = tokio::select! {
            item = stream.next() => item?,
            // Leaving the stream by its end, not by the signal, frees its ring at once; either way it is freed.
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        match item {
            Item::Event(event) => show(&event),
            Item::Lost(lost) => println!("{} events lost", lost.events),
        }
    }
}

fn show(event: &Event) {
    let text = match &event.what {
        What::Flow(flow) => format!("{} -> {} on {}", flow.local, flow.remote, event.algorithm.name()),
        What::Exit(exit) => format!("exit by {}, window {}", exit.reason.name(), exit.record.window),
        What::Undo(undo) => format!("undone, window {} again", undo.restored),
        What::End(end) => format!("ended after {} bytes", end.bytes_acked),
        What::Round(round) => format!("round {}: {} bit/s", round.number, round.rate_bps()),
        What::Loss(loss) => format!("loss at window {}, threshold {}", loss.ack.cwnd, loss.ssthresh),
        What::State(state) => format!("{} -> {}", state.from.name(), state.to.name()),
        What::Restart(restart) => format!("slow start {}", restart.slow_starts),
        What::Ack(ack) => format!("{} acknowledged, window {}", ack.ack.bytes_acked, ack.ack.cwnd),
    };
    println!("{:x} {text}", event.flow);
}
