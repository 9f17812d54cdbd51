//! `onramp lab calibrate`.

use clap::Args;

use super::require_root;
use crate::failure::FAILURE;
use crate::output::Output;
use crate::profile;

/// Measure the emulated link itself: rate within 1 %, base RTT within 1 ms, queue limit within a packet
///
/// The link is built without its random parts and probed with UDP. Exits 1 if it is off: this machine is too busy to
/// emulate it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp lab calibrate\n  onramp lab calibrate --profile ./mine.toml --json"
)]
pub(super) struct Calibrate {
    /// Link: a path, or a name in ./profiles, /etc/onramp/profiles or built in
    #[arg(long, value_name = "PROFILE", default_value = "geo")]
    profile: String,
}

impl Calibrate {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let profile = profile::load(&self.profile)?;
        require_root("lab calibrate")?;
        let calibration = onramp_lab::calibrate::calibrate(&profile.link)?;
        output.data(&calibration, || format!("{}: {calibration}\n", profile.name))?;
        Ok(if calibration.holds() { 0 } else { FAILURE })
    }
}
