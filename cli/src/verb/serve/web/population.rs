//! Flows as a population: how far from the path's product they exited slow start, by RTT, algorithm and network; and
//! which of them it cost most.

use std::collections::BTreeMap;

use serde::Serialize;

use super::hub::HubState;
use super::query::Wanted;
use crate::verb::serve::row::{FlowSummary, network};

/// Bounds of the map on its logarithmic axes: minimum RTT in µs, window at the exit over the BDP.
const RTT_US: (f64, f64) = (1e2, 2e6);
const EXIT_TO_BDP: (f64, f64) = (1.0 / 128.0, 32.0);
const CELLS: (usize, usize) = (40, 24);
/// Parts of a distribution.
const QUANTILES: usize = 100;
/// Flows of a list of the worst, and networks with the most flows.
const WORST: usize = 8;
const NETWORKS: usize = 12;

/// All that is reported of it.
#[derive(Serialize)]
pub(super) struct Population<'a> {
    flows: usize,
    /// Of these, those that left and whose rate is known.
    left: usize,
    map: Map,
    /// By name of the measure.
    distributions: Vec<Distribution<'a>>,
    networks: Vec<Network>,
    worst: Worst<'a>,
}

#[derive(Serialize)]
struct Map {
    rtt_us: (f64, f64),
    exit_to_bdp: (f64, f64),
    cells: (usize, usize),
    /// Column, row and flows, of cells with any.
    flows: Vec<(usize, usize, usize)>,
}

/// One measure of the flows of one algorithm and parameter set.
#[derive(Serialize)]
struct Distribution<'a> {
    measure: &'static str,
    algorithm: &'a str,
    parameter_set: u32,
    flows: usize,
    /// In hundredths, from the least to the most.
    quantiles: Vec<f64>,
    /// How far, in parts of all flows, the true distribution is away at most, everywhere at once, but for an error of 5 %
    /// (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant).
    within: f64,
}

/// A remote network.
#[derive(Serialize)]
struct Network {
    network: String,
    flows: usize,
    median_rtt_us: u32,
    /// At 10, 25, 50, 75 and 90 %; empty: none has left.
    exit_to_bdp: Vec<f64>,
}

#[derive(Serialize)]
struct Worst<'a> {
    /// Most time lost by leaving early.
    early: Vec<&'a FlowSummary>,
    /// Longest queue by leaving late.
    late: Vec<&'a FlowSummary>,
    /// Largest part retransmitted.
    retransmitted: Vec<&'a FlowSummary>,
}

/// Algorithm and number of the parameter set.
type Set<'a> = (&'a str, u32);

type Measure = (&'static str, fn(&FlowSummary) -> Option<f64>);

const MEASURES: [Measure; 4] = [
    ("exit_to_bdp", |row| Some(row.exit_permille_of_bdp()? as f64 / 1e3)),
    ("early_seconds", |row| Some(row.regret?.early_us as f64 / 1e6)),
    ("queue_seconds", |row| Some(row.regret?.queue_us? as f64 / 1e6)),
    ("retransmit_ratio", retransmitted),
];

fn retransmitted(row: &FlowSummary) -> Option<f64> {
    let sent = row.sent_bytes.unwrap_or(row.acknowledged_bytes);
    (sent > 0).then(|| row.retransmitted_bytes as f64 / sent as f64)
}

/// Of the flows that are wanted.
pub(super) fn population<'a>(wanted: &Wanted, state: &'a HubState) -> Population<'a> {
    let rows: Vec<&FlowSummary> = wanted.passing(state).collect();
    let mut cells: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut left = 0;
    for row in &rows {
        let (Some(permille), Some(rtt_us)) = (row.exit_permille_of_bdp(), row.min_rtt_us) else { continue };
        left += 1;
        let cell = (part(rtt_us.into(), RTT_US, CELLS.0), part(permille as f64 / 1e3, EXIT_TO_BDP, CELLS.1));
        *cells.entry(cell).or_default() += 1;
    }
    let mut sets: BTreeMap<Set<'_>, Vec<&FlowSummary>> = BTreeMap::new();
    for row in &rows {
        sets.entry((&row.algorithm, row.parameter_set)).or_default().push(row);
    }
    let distributions = |measure: &Measure| {
        let of_set = |(set, rows): (&Set<'a>, &Vec<&FlowSummary>)| distribution(*set, rows, *measure);
        sets.iter().filter_map(of_set).collect::<Vec<_>>()
    };
    Population {
        flows: rows.len(),
        left,
        map: Map {
            rtt_us: RTT_US,
            exit_to_bdp: EXIT_TO_BDP,
            cells: CELLS,
            flows: cells.into_iter().map(|((column, row), flows)| (column, row, flows)).collect(),
        },
        distributions: MEASURES.iter().flat_map(distributions).collect(),
        networks: networks(&rows),
        worst: Worst {
            early: worst(&rows, MEASURES[1].1),
            late: worst(&rows, MEASURES[2].1),
            retransmitted: worst(&rows, retransmitted),
        },
    }
}

/// Which of so many equal parts of a logarithmic axis a value is in; beyond its ends the last ones.
fn part(value: f64, (least, most): (f64, f64), parts: usize) -> usize {
    let at = (value.clamp(least, most) / least).ln() / (most / least).ln();
    ((at * parts as f64) as usize).min(parts - 1)
}

/// The flows with the most of a measure; of equals those that began first.
fn worst<'a>(rows: &[&'a FlowSummary], measure: fn(&FlowSummary) -> Option<f64>) -> Vec<&'a FlowSummary> {
    let positive = |row: &&'a FlowSummary| Some((measure(row).filter(|value| *value > 0.0)?, *row));
    let mut worst: Vec<(f64, &FlowSummary)> = rows.iter().filter_map(positive).collect();
    let order = |one: &(f64, &FlowSummary), other: &(f64, &FlowSummary)| {
        other.0.total_cmp(&one.0).then(one.1.flow.cmp(&other.1.flow))
    };
    if worst.len() > WORST {
        worst.select_nth_unstable_by(WORST, order);
        worst.truncate(WORST);
    }
    worst.sort_unstable_by(order);
    worst.into_iter().map(|(_, row)| row).collect()
}

/// `None`: the measure is known of none of them.
fn distribution<'a>(
    (algorithm, parameter_set): Set<'a>,
    rows: &[&FlowSummary],
    (measure, value): Measure,
) -> Option<Distribution<'a>> {
    let mut values: Vec<f64> = rows.iter().filter_map(|row| value(row)).collect();
    values.sort_unstable_by(f64::total_cmp);
    (!values.is_empty()).then(|| Distribution {
        measure,
        algorithm,
        parameter_set,
        flows: values.len(),
        quantiles: (0..=QUANTILES).map(|at| quantile(&values, at as f64 / QUANTILES as f64)).collect(),
        within: ((2.0_f64 / 0.05).ln() / (2.0 * values.len() as f64)).sqrt().min(1.0),
    })
}

/// Of values in order, of which there is one at least: the nearest.
fn quantile(values: &[f64], part: f64) -> f64 {
    values[(part * (values.len() - 1) as f64).round() as usize]
}

fn networks(rows: &[&FlowSummary]) -> Vec<Network> {
    let mut by_network: BTreeMap<_, Vec<&FlowSummary>> = BTreeMap::new();
    for row in rows {
        by_network.entry(network(row.remote_address)).or_default().push(row);
    }
    let mut largest: Vec<_> = by_network.into_iter().collect();
    largest.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    let one = |(network, rows): (onramp_net::Prefix, Vec<&FlowSummary>)| {
        let mut rtts: Vec<u32> = rows.iter().filter_map(|row| row.min_rtt_us).collect();
        rtts.sort_unstable();
        let mut exits: Vec<f64> = rows.iter().filter_map(|row| MEASURES[0].1(row)).collect();
        exits.sort_by(f64::total_cmp);
        let parts = if exits.is_empty() { &[][..] } else { &[0.1, 0.25, 0.5, 0.75, 0.9] };
        Network {
            network: network.to_string(),
            flows: rows.len(),
            median_rtt_us: rtts.get(rtts.len() / 2).copied().unwrap_or(0),
            exit_to_bdp: parts.iter().map(|part| quantile(&exits, *part)).collect(),
        }
    };
    largest.into_iter().take(NETWORKS).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::serve::web::tests::row;

    #[test]
    fn what_is_beyond_the_map_is_at_its_edge() {
        assert_eq!(part(1.0, EXIT_TO_BDP, 12), 7);
        assert_eq!([part(0.0, RTT_US, 40), part(1e12, RTT_US, 40)], [0, 39]);
    }

    #[test]
    fn the_worst_are_the_most_of_all_in_order_and_of_equals_the_first() {
        let retransmitted_of = |flow: u64| FlowSummary {
            flow,
            acknowledged_bytes: 1_000,
            retransmitted_bytes: flow * 7 % 20 * 50,
            ..row(flow, "198.51.100.9:443", "best")
        };
        let rows: Vec<FlowSummary> = (0..60).map(retransmitted_of).collect();
        let rows: Vec<&FlowSummary> = rows.iter().collect();
        let found =
            |most: usize| worst(&rows[..most], retransmitted).iter().map(|row| row.flow).collect::<Vec<_>>();
        let mut sorted: Vec<&FlowSummary> =
            rows.iter().copied().filter(|row| row.retransmitted_bytes > 0).collect();
        sorted.sort_by_key(|row| std::cmp::Reverse(row.retransmitted_bytes));
        assert_eq!(found(60), sorted[..WORST].iter().map(|row| row.flow).collect::<Vec<_>>());
        assert_eq!(found(4), [2, 1, 3]);
    }

    #[test]
    fn quantiles_are_values_that_are_there() {
        let values = [1.0, 2.0, 4.0];
        assert_eq!([0.0, 0.5, 1.0].map(|part| quantile(&values, part)), values);
        assert_eq!(quantile(&values[..1], 0.7), 1.0);
    }
}
