// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What was captured of a sender as the tables of a recording.

use onramp_algorithm::{Ack, ExitRecord, NO_THRESHOLD, Verdict};

use super::sender::{Point, Sender};
use super::window::{Exit, Windows, windows};
use crate::rows::{ACK_FLAGS, AckRow, ExitRow, FlowRow, StateRow};
use std::net::SocketAddr;

/// Rows of one flow.
#[derive(Default)]
pub(super) struct Tables {
    pub flows: Vec<FlowRow>,
    pub acks: Vec<AckRow>,
    pub states: Vec<StateRow>,
    pub exits: Vec<ExitRow>,
}

impl Tables {
    /// Adds a flow that has at least one point, by the number that it is to have.
    pub fn add(&mut self, flow: u64, local: SocketAddr, remote: SocketAddr, sender: &Sender) {
        let (Some(first), Some(last)) = (sender.points.first(), sender.points.last()) else { return };
        let mss = sender.mss();
        let (windows, exit) = windows(&sender.points, mss);
        let began_us = sender.started_us.unwrap_or(first.at_us);
        let text = |address: SocketAddr| address.ip().to_canonical().to_string().into();
        let start = FlowRow {
            at_us: began_us,
            flow,
            event: if sender.handshake_was_seen() { "start" } else { "again" }.into(),
            local_address: text(local),
            local_port: local.port().into(),
            remote_address: text(remote),
            remote_port: remote.port().into(),
            started_us: began_us,
            ..FlowRow::default()
        };
        self.flows.push(start);
        let (mut slow_starts, mut was_below) = (0, false);
        for (at, (point, windows)) in sender.points.iter().zip(&windows).enumerate() {
            let below = windows.cwnd < windows.ssthresh;
            slow_starts += u32::from(below && !was_below);
            was_below = below;
            let before = at.checked_sub(1).map(|before| &sender.points[before]);
            let ack = ack(point, before, windows, mss);
            // Outcomes belong to algorithms, and there was none.
            let row = AckRow::new(flow, &ack, &Verdict::default(), "".into());
            self.acks.push(AckRow { sequence: at as u32 + 1, slow_starts, called: u32::from(below), ..row });
        }
        for change in &sender.changes {
            self.states.push(StateRow {
                at_us: change.at_us,
                flow,
                sequence: sender.points.partition_point(|point| point.at_us <= change.at_us) as u32,
                retransmitted_bytes: change.retransmitted,
                from_state: change.from.name().into(),
                to_state: change.to.name().into(),
                in_flight_segments: segments(change.in_flight, mss),
                ssthresh_segments: NO_THRESHOLD,
                ..StateRow::default()
            });
        }
        if let Some(exit) = exit {
            self.exits.push(exit_row(flow, exit, sender, began_us));
        }
        self.flows.push(FlowRow {
            at_us: last.at_us,
            flow,
            sequence: sender.points.len() as u32 + 1,
            event: "end".into(),
            started_us: began_us,
            slow_starts,
            acknowledged_bytes: sender.acknowledged_bytes(),
            sent_bytes: sender.sent_bytes(),
            retransmitted_bytes: sender.retransmitted_bytes(),
            smoothed_rtt_us: last.smoothed_us,
            min_rtt_us: last.min_rtt_us,
            cwnd_segments: windows.last().map_or(0, |last| last.cwnd),
            ssthresh_segments: windows.last().map_or(NO_THRESHOLD, |last| last.ssthresh),
            ..FlowRow::default()
        });
    }
}

fn segments(bytes: u64, mss: u32) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(mss.max(1)))).unwrap_or(u32::MAX)
}

fn ack(point: &Point, before: Option<&Point>, windows: &Windows, mss: u32) -> Ack {
    let flags = [
        ("app_limited", windows.app_limited),
        ("rate_app_limited", windows.app_limited),
        ("cwnd_limited", windows.cwnd_limited),
    ];
    let bit = |(name, is_set): &(&str, bool)| {
        let at = ACK_FLAGS.iter().position(|flag| flag == name);
        at.filter(|_| *is_set).map_or(0, |at| 1_u32 << at)
    };
    let delivered = |point: &Point| (point.delivered / u64::from(mss.max(1))) as u32;
    Ack {
        now_us: point.at_us,
        bytes_acked: point.acknowledged,
        bytes_sent: point.sent,
        bytes_outstanding: (point.sent - point.acknowledged).try_into().unwrap_or(u32::MAX),
        delivered: delivered(point),
        acked: delivered(point).wrapping_sub(before.map_or(0, delivered)),
        rtt_us: point.rtt_us.map_or(-1, |us| us.min(i32::MAX as u32) as i32),
        smoothed_rtt_us: point.smoothed_us,
        min_rtt_us: point.min_rtt_us,
        cwnd: windows.cwnd,
        ssthresh: windows.ssthresh,
        in_flight: segments(point.in_flight, mss),
        mss,
        gso_max_size: 65_536,
        flags: flags.iter().map(bit).sum(),
        receiver_clock: point.receiver_clock,
        receive_window: point.receive_window,
        ..Ack::default()
    }
}

fn exit_row(flow: u64, exit: Exit, sender: &Sender, began_us: u64) -> ExitRow {
    let point = &sender.points[exit.at];
    let mss = sender.mss();
    let record = ExitRecord {
        at_us: point.at_us.saturating_sub(began_us),
        bytes_acked: point.acknowledged,
        window: exit.window,
        window_after: exit.window,
        in_flight: segments(point.in_flight, mss),
        rtt_us: point.rtt_us.unwrap_or(point.smoothed_us),
        min_rtt_us: point.min_rtt_us,
        mss: mss.try_into().unwrap_or(u16::MAX),
        reason: exit.reason as u8,
        ..ExitRecord::default()
    };
    let mut row = ExitRow {
        at_us: point.at_us,
        flow,
        sequence: exit.at as u32 + 1,
        event: "exit".into(),
        ..ExitRow::default()
    };
    row.set_exit_record(&record);
    row
}
