//! `onramp-lab qlog`.

use std::path::{Path, PathBuf};

use clap::Args;
use onramp_lab::qlog;
use onramp_recording::{Error, Recording};

use crate::failure::{PARTIAL, Usage};
use crate::output::say_of_input;
use crate::target;
use crate::units;

/// Turn a recording into qlog, a JSON text sequence of recovery events that qvis opens
///
/// One file has all flows; name it .sqlog. Exits 5 if some files of the recording could not be read; the others are in
/// the output.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp-lab qlog recording -o flows.sqlog
  onramp-lab qlog recording --flow 18446612 | head")]
pub(crate) struct Qlog {
    /// Directory of a recording, or its file of acknowledgments; - is standard input
    #[arg(value_name = "RECORDING")]
    path: PathBuf,
    /// Only the flow of this number
    #[arg(long, value_name = "NUMBER", value_parser = units::number(0..=u64::MAX))]
    flow: Option<u64>,
    /// File to write [default: -, standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Qlog {
    pub fn run(self) -> anyhow::Result<u8> {
        if let Some(output) = &self.output {
            refuse_within(&self.path, output)?;
        }
        let mut recording = Recording::open(&self.path)?;
        let has_acks = recording.has_acks(self.flow);
        if has_acks {
            target::write(self.output.as_deref(), |output| qlog::write(&mut recording, self.flow, output))?;
        }
        say_of_input(&recording.problems, &recording.notes);
        if !has_acks {
            // Where some of it cannot be read, they may be there.
            let purpose = recording.problems.is_empty().then_some("written as qlog");
            return Err(Error::NoAcks { path: self.path, flow: self.flow, purpose }.into());
        }
        Ok(if recording.problems.is_empty() { 0 } else { PARTIAL })
    }
}

/// An output that is part of the recording would be emptied before that is read.
fn refuse_within(recording: &Path, output: &Path) -> anyhow::Result<()> {
    // What is not there yet is no part of it.
    if let (Ok(recording), Ok(output_at)) = (recording.canonicalize(), output.canonicalize())
        && output_at.starts_with(&recording)
    {
        return Err(Usage::error(format!(
            "{} is part of the recording, which it would overwrite: name another file with -o",
            output.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_output_that_is_the_recording_or_in_it_is_refused_before_it_is_touched() {
        let home = tempfile::tempdir().unwrap();
        let (directory, file, link) =
            (home.path().join("r"), home.path().join("r/acks.parquet"), home.path().join("l"));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, "acks").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for (path, output) in [(&file, &file), (&directory, &file), (&file, &link), (&directory, &link)] {
            let qlog = Qlog { path: path.clone(), flow: None, output: Some(output.clone()) };
            assert!(qlog.run().unwrap_err().to_string().contains("part of the recording"));
            assert_eq!(fs::read_to_string(&file).unwrap(), "acks");
        }
        let beside = home.path().join("flows.sqlog");
        refuse_within(&directory, &beside).unwrap();
        fs::write(&beside, "").unwrap();
        refuse_within(&directory, &beside).unwrap();
    }
}
