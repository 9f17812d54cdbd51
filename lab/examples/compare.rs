// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Compares the kernel's own controls over a profile: `compare PROFILE.toml REPETITIONS CONTROL…`.

use onramp_lab::experiment::{Arm, Plan, Progress, compare};
use onramp_lab::profile::Profile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: compare PROFILE.toml REPETITIONS CONTROL…";
    let profile = Profile::load(arguments.next().ok_or(usage)?)?;
    let repetitions = arguments.next().ok_or(usage)?.parse()?;
    let arms: Vec<_> = arguments.map(|name| Arm::stock(&name)).collect();
    let plan = Plan { repetitions, ..Plan::new(profile) };
    let comparison = compare(&plan, &arms, |progress| {
        if let Progress::Finished { index, total, arm, run, .. } = progress {
            let json = serde_json::to_string(run).unwrap_or_default();
            eprintln!("{}/{total} {arm} {json}", index + 1);
        }
    })?;
    print!("{}", onramp_lab::table::comparison(&comparison));
    Ok(())
}
