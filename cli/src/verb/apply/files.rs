//! Files that say what is to be attached and which rules there are to be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use onramp_files::bounded;
use onramp_loader::algorithm::{self, Algorithm};
use onramp_loader::guard::GuardOptions;
use onramp_loader::select::{Profile, Rule, Target};
use onramp_loader::telemetry::Level;
use onramp_loader::{AttachOptions, Error};
use onramp_profiles::Value;
use onramp_profiles::{not_toml, toml_reason};
use serde::Deserialize;
use toml::Spanned;

use crate::failure::{Usage, sentence};
use crate::guard;
use crate::profile::{self, Origin};
use crate::settings::{BaseName, Settings};
use crate::verb::select::words::{Controls, RuleWords, TargetWords};

/// Where files are looked for.
pub(super) const DIRECTORY: &str = "/etc/onramp";
/// Version of the format.
const VERSION: i64 = 1;

/// A file, of which there may be several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<i64>,
    #[serde(default)]
    attach: BTreeMap<Spanned<String>, Attach>,
    #[serde(default)]
    select: Vec<Spanned<Select>>,
}

/// How an algorithm is to be attached.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attach {
    profile: Option<Spanned<String>>,
    base: Option<Spanned<BaseName>>,
    /// As `attach --after-exit` takes it.
    after_exit: Option<Spanned<String>>,
    /// As `attach --start` takes it.
    start: Option<Spanned<String>>,
    #[serde(default)]
    default: bool,
    #[serde(default)]
    observe: bool,
    telemetry: Option<Spanned<String>>,
    /// As `attach --guard` takes it.
    guard: Option<Spanned<String>>,
    control_share: Option<Spanned<String>>,
    #[serde(default)]
    params: BTreeMap<Spanned<String>, Value>,
}

/// A rule, with the options of `onramp select add`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Select {
    to: Option<String>,
    port: Option<i64>,
    cgroup: Option<String>,
    #[serde(default)]
    accept: bool,
    #[serde(default)]
    connect: bool,
    #[serde(rename = "use")]
    choice: Option<String>,
    profile: Option<String>,
    initial_window: Option<i64>,
    resume: Option<String>,
}

/// What all files want together.
#[derive(Default)]
pub(super) struct Desired {
    /// The files, in the order in which they were read.
    pub files: Vec<PathBuf>,
    /// Algorithms, in the order of their names.
    pub attach: BTreeMap<&'static str, AttachOptions>,
    pub rules: Vec<Rule>,
    /// Profiles that the rules name in addition to those of the algorithms.
    pub profiles: Vec<Profile>,
}

/// A place in a file.
#[derive(Clone)]
struct Place {
    file: PathBuf,
    line: usize,
}

impl Place {
    fn text(&self) -> String {
        format!("{} line {}", bounded::name(&self.file), self.line)
    }

    fn error(&self, why: &str) -> anyhow::Error {
        Usage::error(format!("{}: {why}", self.text()))
    }
}

/// A file with its text.
struct Source {
    file: PathBuf,
    text: String,
}

impl Source {
    fn read(file: PathBuf) -> anyhow::Result<Self> {
        require_trusted(&file)?;
        let text = bounded::read_text(&file)
            .map_err(|error| Usage::error(format!("cannot read {}: {error}", file.display())))?;
        Ok(Self { file, text })
    }

    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or_default();
        Place { file: self.file.clone(), line: before.matches('\n').count() + 1 }
    }

    fn parse(&self) -> anyhow::Result<File> {
        toml::from_str(&self.text).map_err(|error| {
            if let Some(what) = not_toml(&self.text) {
                return Usage::error(format!("{}: it is {what}", bounded::name(&self.file)));
            }
            self.place(error.span().map_or(0, |span| span.start)).error(&toml_reason(&error))
        })
    }
}

/// Fails where others could have written what is about to be done as root. What cannot be looked at, reading fails with;
/// standard input is from the caller.
fn require_trusted(path: &Path) -> anyhow::Result<()> {
    if bounded::is_standard(path) {
        return Ok(());
    }
    match onramp_loader::require_trusted(path) {
        Err(Error::Io { .. }) => Ok(()),
        other => Ok(other?),
    }
}

/// The same of a profile's file, and of the one that it is like.
fn require_trusted_profile(given: &str) -> anyhow::Result<()> {
    let Origin::File(path) = profile::origin(given) else { return Ok(()) };
    require_trusted(&path)?;
    let like = bounded::read_text(&path).ok().and_then(|text| {
        let table: toml::Table = toml::from_str(&text).ok()?;
        Some(path.with_file_name(format!("{}.toml", table.get("like")?.as_str()?)))
    });
    like.map_or(Ok(()), |like| require_trusted(&like))
}

/// What the files of a directory, or one file, want; without a path those of /etc/onramp, of which there may be none.
///
/// # Errors
/// The first thing that is wrong, with its file and line. Controls that no file attaches have to be there already.
pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Desired> {
    let sources: Vec<_> = files(path)?.into_iter().map(Source::read).collect::<Result<_, _>>()?;
    let parsed: Vec<_> = sources.iter().map(Source::parse).collect::<Result<_, _>>()?;
    let mut reading = Reading::default();
    for (source, file) in sources.iter().zip(&parsed) {
        reading.attach(source, file)?;
    }
    // Rules may use what any file attaches.
    for (source, file) in sources.iter().zip(&parsed) {
        reading.select(source, file)?;
    }
    Ok(Desired { files: sources.into_iter().map(|source| source.file).collect(), ..reading.desired })
}

fn files(path: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    let directory = path.unwrap_or(Path::new(DIRECTORY));
    if path.is_some_and(|path| !path.is_dir()) {
        return Ok(vec![directory.to_owned()]);
    }
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot list {}", directory.display()))?,
    };
    require_trusted(directory)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", directory.display()))?.path();
        // Editors keep what is not a file of ours under such names.
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        match path.extension() {
            Some(extension) if !hidden && extension == "toml" => files.push(path),
            Some(extension) if !hidden && extension.eq_ignore_ascii_case("toml") => {
                let why = "would not be read: rename it to .toml, or move it to another directory";
                return Err(Usage::error(format!(
                    "{}: its ending .{} {why}",
                    bounded::name(&path),
                    extension.display()
                )));
            }
            _ => {}
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Default)]
struct Reading {
    desired: Desired,
    attached: BTreeMap<&'static str, Place>,
    default: Option<(&'static str, Place)>,
    targets: BTreeMap<Target, Place>,
    controls: Option<Controls>,
}

impl Reading {
    fn attach(&mut self, source: &Source, file: &File) -> anyhow::Result<()> {
        let version = *file.version.get_ref();
        if version != VERSION {
            let why = format!("version = {version} is not known: give {VERSION}");
            return Err(source.place(file.version.span().start).error(&why));
        }
        for (name, wanted) in &file.attach {
            let place = source.place(name.span().start);
            if algorithm::outside::is_path(name.get_ref()) {
                return Err(
                    place.error("files name algorithms of onramp: attach an object by `onramp attach`")
                );
            }
            let algorithm =
                onramp_loader::find(name.get_ref()).map_err(|error| place.error(&error.to_string()))?;
            let name = algorithm.name();
            if let Some(first) = self.attached.insert(name, place.clone()) {
                return Err(place.error(&format!("{name} is in {} already", first.text())));
            }
            let options = options(source, &place, algorithm, wanted)?;
            if options.default
                && let Some((other, first)) = self.default.replace((name, place.clone()))
            {
                let why = format!("{name} cannot be the default: {other} is, in {}", first.text());
                return Err(place.error(&why));
            }
            self.desired.attach.insert(name, options);
        }
        Ok(())
    }

    fn select(&mut self, source: &Source, file: &File) -> anyhow::Result<()> {
        let attached = self.desired.attach.values();
        let controls = self.controls.get_or_insert_with(|| Controls::with(attached));
        for wanted in &file.select {
            let place = source.place(wanted.span().start);
            let profile = wanted.get_ref().profile.as_deref();
            profile
                .map_or(Ok(()), require_trusted_profile)
                .map_err(|error| place.error(&sentence(&error)))?;
            let rule = words(wanted.get_ref()).rule(controls);
            let rule = rule.map_err(|error| place.error(&sentence(&error)))?;
            if let Some(first) = self.targets.insert(rule.target.clone(), place.clone()) {
                let why = format!("{} has a rule in {} already", rule.target, first.text());
                return Err(place.error(&why));
            }
            goes_with_its_rules(&rule, &self.desired).map_err(|why| place.error(&why))?;
            self.desired.rules.push(rule);
        }
        self.desired.profiles.append(&mut controls.made);
        Ok(())
    }
}

/// What no file attaches any more is about to be detached, so no rule can use it.
fn goes_with_its_rules(rule: &Rule, desired: &Desired) -> Result<(), String> {
    let control = &rule.choice.control;
    let Ok(algorithm) = onramp_loader::find(control) else { return Ok(()) };
    let name = algorithm.name();
    let applied = onramp_loader::is_applied(algorithm).map_err(|error| error.to_string())?;
    if applied && !desired.attach.contains_key(name) {
        return Err(format!("{name} will be detached, because no file attaches it: write [attach.{name}]"));
    }
    Ok(())
}

/// A set of options as the command line has it.
fn set_of_options<T: FromStr<Err = String>>(
    source: &Source,
    key: &str,
    written: &Spanned<String>,
) -> anyhow::Result<T> {
    let place = source.place(written.span().start);
    written.get_ref().parse().map_err(|why| place.error(&format!("{key}: {why}")))
}

fn options(
    source: &Source,
    place: &Place,
    algorithm: Algorithm,
    wanted: &Attach,
) -> anyhow::Result<AttachOptions> {
    let mut settings = Settings {
        algorithm: Some(algorithm.name().into()),
        profile: None,
        settings: Vec::new(),
        base: wanted.base.as_ref().map(|base| *base.get_ref()),
        after_exit: None,
        start: None,
        telemetry: None,
    };
    if let Some(options) = &wanted.after_exit {
        settings.after_exit = Some(set_of_options(source, "after_exit", options)?);
    }
    if let Some(start) = &wanted.start {
        settings.start = Some(set_of_options(source, "start", start)?);
    }
    if let Some(level) = &wanted.telemetry {
        let place = source.place(level.span().start);
        settings.telemetry = Some(Level::find(level.get_ref()).ok_or_else(|| {
            let levels = Level::ALL.map(Level::name).join(", ");
            place.error(&format!("telemetry = {:?} is not a level: give one of {levels}", level.get_ref()))
        })?);
    }
    let at = |place: &Place, settings: &Settings| {
        settings.options().map_err(|error| place.error(sentence(&error).lines().next().unwrap_or_default()))
    };
    // One thing after another, so that each error has its line.
    if let Some(profile) = &wanted.profile {
        let place = source.place(profile.span().start);
        require_trusted_profile(profile.get_ref()).map_err(|error| place.error(&sentence(&error)))?;
        settings.profile = Some(profile.get_ref().clone());
        at(&place, &settings)?;
    }
    for (name, value) in &wanted.params {
        let setting = format!("{}={}", name.get_ref(), profile::word(algorithm, name.get_ref(), value));
        settings.settings.push(setting);
        at(&source.place(name.span().start), &settings)?;
    }
    let mut options = at(place, &settings)?;
    options.default = wanted.default;
    options.observe = wanted.observe;
    options.applied = true;
    options.guard = guard_of(source, wanted)?;
    guard::reject_idle_guard(&options).map_err(|error| place.error(&sentence(&error)))?;
    Ok(options)
}

fn guard_of(source: &Source, wanted: &Attach) -> anyhow::Result<Option<GuardOptions>> {
    let place = |word: &Spanned<String>| source.place(word.span().start);
    let share = match &wanted.control_share {
        Some(word) if wanted.guard.is_none() => {
            return Err(place(word)
                .error("control_share is of a guard: write guard = \"goodput=-10%\", or leave it out"));
        }
        Some(word) => guard::control_share(word.get_ref()).map_err(|why| place(word).error(&why))?,
        None => guard::control_share(guard::CONTROL_SHARE).map_err(Usage::error)?,
    };
    let guard = wanted.guard.as_ref().map(|word| {
        let margins = guard::margins(word.get_ref()).map_err(|why| place(word).error(&why))?;
        Ok(margins.guard(share))
    });
    guard.transpose()
}

fn words(wanted: &Select) -> RuleWords {
    RuleWords {
        target: TargetWords {
            to: wanted.to.clone(),
            cgroup: wanted.cgroup.clone(),
            port: wanted.port.map(|port| port.to_string()),
            accept: wanted.accept,
            connect: wanted.connect,
        },
        choice: wanted.choice.clone(),
        profile: wanted.profile.clone(),
        initial_window: wanted.initial_window.map(|window| window.to_string()),
        resume: wanted.resume.clone(),
    }
}

#[cfg(test)]
mod tests;
