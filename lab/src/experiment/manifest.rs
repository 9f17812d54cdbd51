// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What was run, on what; and whether that is what is to be run.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::arm::Arm;
use super::plan::Tool;
use onramp_terminal::output::SCHEMA;

use super::result::Comparison;
use super::{ExperimentError, Plan, files, iperf3};
use crate::clock;

const MANIFEST: &str = "manifest.json";
/// The comparison, next to it.
pub(super) const RESULT: &str = "result.json";

/// All that results depend on, but for chance: what has to be the same for them to be of one experiment.
fn conditions(plan: &Plan, arms: &[Arm]) -> Map<String, Value> {
    let arms: Vec<_> = arms
        .iter()
        .map(|arm| {
            json!({
                "arm": arm.name,
                "congestion_control": arm.congestion_control,
                "parameters": arm.parameters,
                "exit_from_record": arm.records_exit,
                "host": arm.host,
            })
        })
        .collect();
    let changes: Vec<_> = plan.changes.iter().map(|change| format!("{change:?}")).collect();
    [
        ("onramp_version", json!(env!("CARGO_PKG_VERSION"))),
        ("made_in", json!(plan.clock.origin())),
        ("machine", json!(std::env::consts::ARCH)),
        ("profile", json!(plan.profile)),
        ("amount", json!(plan.amount)),
        ("tool", json!(plan.tool)),
        ("flows", json!(plan.flows)),
        ("stagger_seconds", json!(plan.stagger.as_secs_f64())),
        ("competitor", json!(plan.competitor)),
        ("objects", json!(plan.objects)),
        ("link_changes", json!(changes)),
        ("repetitions", json!(plan.repetitions)),
        ("seed", json!(plan.seed)),
        ("arms", json!(arms)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .chain(seldom(plan))
    .collect()
}

/// What most experiments do not ask for, and manifests therefore do not name.
fn seldom(plan: &Plan) -> impl Iterator<Item = (String, Value)> {
    let extra = (!plan.extra_rtt_us.is_empty()).then(|| ("extra_rtt_us", json!(plan.extra_rtt_us)));
    let paths = (!plan.paths.is_empty()).then(|| ("paths", json!(plan.paths)));
    let warm = plan.warm_bytes.map(|bytes| ("warm_bytes", json!(bytes)));
    let timeout = plan.timeout.map(|limit| ("timeout_seconds", json!(limit.as_secs_f64())));
    [extra, paths, warm, timeout].into_iter().flatten().map(|(name, value)| (name.to_owned(), value))
}

/// What does not make it another experiment.
fn circumstances(plan: &Plan) -> Result<Map<String, Value>, ExperimentError> {
    let sysctls: Map<_, _> = plan
        .profile
        .host
        .sysctls()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let hystart: Map<_, _> = ["", "_detect", "_low_window", "_ack_delta_us"]
        .into_iter()
        .filter_map(|rest| {
            let name = format!("hystart{rest}");
            let value = read_trimmed(&format!("/sys/module/tcp_cubic/parameters/{name}"))?;
            Some((name, value.into()))
        })
        .collect();
    let clock = json!({
        "base": "CLOCK_MONOTONIC; seconds in CSV files count from the flow's first data",
        "monotonic_ns": clock::now(),
        "utc": clock::utc(),
    });
    let iperf3_version = match plan.tool {
        Tool::Builtin => None,
        Tool::Iperf3 => Some(iperf3::version(&plan.iperf3)?),
    };
    let circumstances = [
        ("schema", json!(SCHEMA)),
        ("command_line", json!(plan.command_line)),
        ("processors", json!(std::thread::available_parallelism().map_or(0, usize::from))),
        ("iperf3_version", json!(iperf3_version)),
        ("qdisc", json!(read_trimmed("/proc/sys/net/core/default_qdisc"))),
        ("sysctls", json!(sysctls)),
        ("cubic_module_parameters", json!(hystart)),
        ("jobs", json!(plan.jobs)),
        ("retries", json!(plan.retries)),
        ("clock", clock),
    ];
    Ok(circumstances.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

pub(super) fn write(directory: &Path, plan: &Plan, arms: &[Arm]) -> Result<(), ExperimentError> {
    let mut manifest = circumstances(plan)?;
    manifest.extend(conditions(plan, arms));
    files::write_json(directory.join(MANIFEST), &manifest)
}

/// What the directory has, if it is of this very experiment and complete.
pub(super) fn kept(directory: &Path, plan: &Plan, arms: &[Arm]) -> Option<Comparison> {
    let read = |name| fs::read_to_string(directory.join(name)).ok();
    let manifest: Map<String, Value> = serde_json::from_str(&read(MANIFEST)?).ok()?;
    // Through text, as the manifest went, so that numbers compare.
    let asked = serde_json::to_string(&conditions(plan, arms)).ok()?;
    let asked: Map<String, Value> = serde_json::from_str(&asked).ok()?;
    if asked.iter().any(|(name, value)| manifest.get(name) != Some(value)) {
        return None;
    }
    let comparison: Comparison = serde_json::from_str(&read(RESULT)?).ok()?;
    Some(Comparison { directory: Some(directory.to_owned()), ..comparison })
}

fn read_trimmed(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Amount, ArmResult, Run};
    use crate::profile::Profile;
    use crate::question::testing::comparison;

    #[test]
    fn results_are_kept_for_the_same_experiment_only() {
        let directory = tempfile::tempdir().unwrap();
        let text = include_str!("../../../profiles/geo.toml");
        let plan = Plan::new(Profile::parse(text, "geo.toml").unwrap());
        let mut arms = [Arm::stock("cubic")];
        let kept = |plan: &Plan, arms: &[Arm]| kept(directory.path(), plan, arms);
        assert!(kept(&plan, &arms).is_none(), "nothing is there");
        files::write_json(directory.path().join(MANIFEST), &conditions(&plan, &arms)).unwrap();
        assert!(kept(&plan, &arms).is_none(), "an experiment that was cut off");
        let run = Run { valid: true, invalid_reason: None, seconds: 10.5, ..Run::failed(3, String::new()) };
        let comparison = comparison(vec![ArmResult::new("cubic", "cubic", vec![run])]);
        files::write_json(directory.path().join(RESULT), &comparison).unwrap();
        let found = kept(&plan, &arms).unwrap();
        assert_eq!(found.directory.as_deref(), Some(directory.path()));
        assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&comparison).unwrap());
        assert!(kept(&Plan { jobs: 3, ..plan.clone() }, &arms).is_some(), "the same, made faster");
        assert!(kept(&Plan { seed: 2, ..plan.clone() }, &arms).is_none());
        assert!(kept(&Plan { amount: Amount::Seconds(5), ..plan.clone() }, &arms).is_none());
        let extra_rtt_us = vec![0];
        assert!(kept(&Plan { extra_rtt_us, ..plan.clone() }, &arms).is_none(), "another RTT");
        assert!(kept(&Plan { warm_bytes: Some(9), ..plan.clone() }, &arms).is_none(), "another start");
        let timeout = Some(std::time::Duration::from_secs(9));
        assert!(kept(&Plan { timeout, ..plan.clone() }, &arms).is_none(), "another limit");
        arms[0].parameters.insert("threshold_pct".into(), "30".into());
        assert!(kept(&plan, &arms).is_none(), "another parameter");
    }
}
