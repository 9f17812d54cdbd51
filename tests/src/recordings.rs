//! Recordings of flows that no kernel had.

use std::path::Path;

use onramp_loader::algorithm::{Ack, Flow, find};
use onramp_recording::rows::{AckRow, ExitRow, FlowRow, ParameterRow, RoundRow};
use onramp_recording::{Limits, Manifest, SCHEMA, Writer};

/// Acknowledgments of a slow start: the window grows by a segment on each, the queue from a window of 100 on.
pub fn slow_start(acks: u32) -> impl Iterator<Item = Ack> {
    (0..acks).map(|index| {
        let cwnd = 10 + index;
        let rtt_us = 50_000 + cwnd.saturating_sub(100) * 500;
        Ack {
            now_us: 1_050_000 + u64::from(index) * 1_000,
            bytes_acked: u64::from(index + 1) * 1_000,
            bytes_sent: u64::from(2 * index + 11) * 1_000,
            bytes_outstanding: (index + 10) * 1_000,
            delivered: index + 1,
            acked: 1,
            rtt_us: rtt_us as i32,
            smoothed_rtt_us: rtt_us,
            min_rtt_us: 50_000,
            cwnd,
            ssthresh: 0x7fff_ffff,
            in_flight: cwnd - 1,
            mss: 1_000,
            gso_max_size: 65_536,
            ..Ack::default()
        }
    })
}

/// Two flows under `search`, in files of 400 rows.
///
/// # Panics
/// If it cannot be written.
pub fn recording(directory: &Path) {
    recording_from(directory, "192.0.2.1");
}

/// The same, from this address.
///
/// # Panics
/// If it cannot be written.
pub fn recording_from(directory: &Path, local_address: &str) {
    let manifest = Manifest {
        schema: SCHEMA,
        onramp: "0.1.0".to_owned(),
        level: "ack".to_owned(),
        ..Manifest::default()
    };
    let mut writer = Writer::create(directory, manifest, Limits { rows: 400, ..Limits::default() }).unwrap();
    let search = find("search").unwrap();
    for (name, value) in search.parameters().shown() {
        let (name, value) = (name.into(), value.into());
        writer
            .push(ParameterRow { algorithm: "search".into(), name, value, ..ParameterRow::default() })
            .unwrap();
    }
    for number in [1, 2] {
        let start =
            FlowRow { flow: number, event: "start".into(), algorithm: "search".into(), ..FlowRow::default() };
        let (local, remote) = (local_address.to_owned().into(), "192.0.2.2".into());
        let (local_port, remote_port) = (40_000 + number as u32, 443);
        writer
            .push(FlowRow { local_address: local, local_port, remote_address: remote, remote_port, ..start })
            .unwrap();
        let mut flow = Flow::new(search.parameters());
        for (index, ack) in slow_start(600).enumerate() {
            let verdict = flow.on_ack(&ack);
            let row = AckRow::new(number, &ack, &verdict, search.outcome_name(verdict.outcome).into());
            writer.push(AckRow { slow_starts: 1, sequence: index as u32 + 1, ..row }).unwrap();
        }
        let exit =
            ExitRow { flow: number, event: "exit".into(), reason: "loss".into(), ..ExitRow::default() };
        writer
            .push(ExitRow {
                since_start_us: 650_000,
                cwnd_segments: 609,
                mss_bytes: 1_000,
                min_rtt_us: 50_000,
                ..exit
            })
            .unwrap();
        let round =
            RoundRow { flow: number, duration_us: 50_000, acknowledged_bytes: 10_000, ..RoundRow::default() };
        writer
            .push(RoundRow { cwnd_segments: 20, mss_bytes: 1_000, in_flight_segments: 19, ..round })
            .unwrap();
    }
    writer.finish(2_000_000).unwrap();
}
