//! Profiles that verbs write.

use std::path::Path as File;

use anyhow::Context;
use onramp_files::bounded;
use onramp_profiles::Profile;

use crate::failure::Usage;
use crate::target;

/// Longest name of a profile.
const LONGEST_NAME: usize = 31;

/// What a profile is called that has no file.
const UNNAMED: &str = "path";

/// Profiles are called as their files.
pub(super) fn name(file: &File) -> anyhow::Result<String> {
    if bounded::is_standard(file) {
        return Ok(UNNAMED.to_owned());
    }
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if file.extension().is_none_or(|extension| extension != "toml")
        || name.is_empty()
        || name.len() > LONGEST_NAME
        || !name.chars().all(plain)
    {
        return Err(Usage::error(format!(
            "--write-profile {}: give NAME.toml, NAME of 1 to {LONGEST_NAME} lower-case letters, digits and dashes",
            file.display()
        )));
    }
    Ok(name)
}

/// Writes a profile with a comment at its head.
pub(super) fn write(file: &File, profile: &Profile, comment: &str) -> anyhow::Result<()> {
    let text = toml::to_string(profile).context("cannot write the profile")?;
    target::write(Some(file), |output| write!(output, "# {comment}\n\n{text}"))
}

/// The file as `--profile` accepts it: with a slash, it is no name.
pub(super) fn argument(file: &File) -> String {
    let file = file.display().to_string();
    if file.contains('/') || file == bounded::STANDARD { file } else { format!("./{file}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_called_as_its_file() {
        assert_eq!(name(File::new("/tmp/slow-1.toml")).unwrap(), "slow-1");
        for wrong in ["slow", "Slow.toml", ".toml", "a_b.toml", "x.json"] {
            let error = name(File::new(wrong)).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("NAME.toml"), "{error}");
        }
        assert!(name(File::new(&format!("{}.toml", "a".repeat(32)))).is_err());
    }
}
