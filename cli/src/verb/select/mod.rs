//! `onramp select`.

mod answer;
pub(super) mod undo;
pub(super) mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use onramp_files::bounded;
use onramp_loader::Action;
use onramp_loader::select::{self, Rule, Selection, Target, missing_controls};
use serde::Serialize;

use self::answer::Test;
use self::undo::{Sets, Undo};
use self::words::{Controls, RuleWords, TargetWords};
use super::plan;
use crate::failure::Usage;
use crate::output::{Output, escape_line};
use crate::units::count;

/// Choose who gets what: congestion controls and initial windows by the peer's prefix, by port or by cgroup
///
/// Rules hold for the whole host, in all its network namespaces, and for connections that are established from then on. A
/// rule is for connections that agree with everything it names. Of several the one with the longest prefix decides; of these
/// one with a port; of these the one of the nearest cgroup; of these one with --accept or --connect. What an application chooses by setsockopt(TCP_CONGESTION), before or after,
/// wins; so does a route with `congctl lock`. A rule wins over a route's other `congctl` and over the default of the
/// network namespace, which decide where no rule does.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp select add --to 203.0.113.0/24 --use search --initial-window 20
  onramp select add --to 203.0.113.0/24 --port 443 --accept --use ramp
  onramp select add --port 22 --accept --use cubic
  onramp select add --cgroup /system.slice/nginx.service --use ramp
  onramp select add --to 198.51.100.0/24 --use search --profile geo
  onramp select test 203.0.113.9:443
  onramp select list > rules; onramp select load rules

Undo: printed; `onramp select del --all` removes all rules and the program")]
pub(crate) struct Select {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Add(Add),
    Del(Del),
    List(List),
    Test(Test),
    Load(Load),
}

/// Add a rule
///
/// The first one attaches a program to the root of cgroup v2 and pins it; connections that are established from then
/// on are asked about. With --profile they get parameters of their own: an algorithm has up to 15 sets in addition to that of its
/// attachment, each there for as long as a rule names it or a connection has it. One that is there stays as it is.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp select add --to 2001:db8::/32 --use search
  onramp select add --to 203.0.113.0/24 --port 443 --accept --use search --initial-window 20
  onramp select add --to 203.0.113.0/24 --use search --profile geo --replace
  onramp select add --port 22 --use cubic --dry-run

Undo: printed; onramp select del with the same connections, or onramp select add --replace with the previous rule")]
struct Add {
    #[command(flatten)]
    rule: RuleWords,
    /// Put it in the place of the rule for the same connections, if there is one: each connection gets the one or the other
    #[arg(long)]
    replace: bool,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Remove a rule, or all
///
/// The rule is named by all that it was added with before --use. The last one takes the program with it. Connections keep
/// what they have.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp select del --to 203.0.113.0/24 --accept
  onramp select del --all --keep rules

Undo: printed; onramp select add, or with --keep FILE `onramp select load FILE`")]
struct Del {
    #[command(flatten)]
    target: TargetWords,
    /// All rules and the program, also what an interrupted command left
    #[arg(long, conflicts_with_all = ["to", "cgroup", "port", "accept", "connect"])]
    all: bool,
    /// With --all: write the rules to this file first, which must not be there
    #[arg(long, value_name = "FILE", requires = "all")]
    keep: Option<PathBuf>,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// List the rules, as `load` takes them
///
/// Those of prefixes come first, then those of ports, then those of cgroups, as they decide. What is behind # says what is
/// not as it was asked for: a control that is not registered, a cgroup that is gone.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  onramp select list > rules\n  onramp select list --json | jq '.rules[].use'"
)]
struct List {}

/// Replace all rules by those of a file, at once
///
/// A line has the options of `onramp select add`; what follows # is a comment. All of the file or nothing of it: a
/// connection that is established meanwhile is decided by the previous rules or by the new.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp select load rules --keep previous
  onramp select load rules --dry-run

Undo: printed; with --keep FILE, `onramp select load FILE`")]
struct Load {
    /// File of rules
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the rules that are replaced to this file first, which must not be there
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
}

/// A rule as JSON.
#[derive(Serialize)]
struct RuleRow {
    to: Option<String>,
    port: Option<u16>,
    cgroup: Option<String>,
    cgroup_id: Option<u64>,
    side: &'static str,
    #[serde(rename = "use")]
    choice: String,
    congestion_control: String,
    profile: Option<String>,
    initial_window_segments: Option<u32>,
    /// What is known of the path: its rate, and the RTT of the empty path.
    resume_rate_bits_per_s: Option<u64>,
    resume_rtt_us: Option<u32>,
    /// Whether the kernel has the control; where not, the rule changes nothing.
    registered: bool,
    /// Whether the profile is missing: the control's own parameters take its place.
    profile_missing: bool,
}

#[derive(Serialize)]
struct Listing {
    active: bool,
    /// The cgroup, not the root, whose connections alone are given what the rules say.
    holds_in: Option<String>,
    rules: Vec<RuleRow>,
}

#[derive(Serialize)]
struct RulesReport {
    rules_added: usize,
    rules_removed: usize,
    undo: Option<String>,
    /// What that does not restore.
    undo_leaves_out: Vec<String>,
}

impl Select {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        match self.verb {
            Verb::Add(verb) => verb.run(output),
            Verb::Del(verb) => verb.run(output),
            Verb::List(verb) => verb.run(output),
            Verb::Test(verb) => verb.run(output),
            Verb::Load(verb) => verb.run(output),
        }
    }
}

impl Add {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let mut controls = Controls::default();
        let rule = self.rule.rule(&mut controls)?;
        let before = Sets::now();
        let undo = |replaced: Option<&Rule>, after: &Sets| match replaced {
            Some(existing) => Undo::adding(std::slice::from_ref(existing), &before, after, true),
            None => Undo::by(format!("onramp select del {:#}", rule.target)),
        };
        if self.dry_run {
            let existing = select::check_add(&rule, self.replace)?;
            let what = existing
                .as_ref()
                .map_or_else(|| format!("add {rule}"), |one| format!("replace {one} by {rule}"));
            let undo = undo(existing.as_ref(), &Sets::default()).command.unwrap_or_default();
            return plan::print(&[Action { what, undo }], output);
        }
        let existing = select::add(&rule, &controls.made, self.replace)?;
        let said = existing
            .as_ref()
            .map_or_else(|| format!("added {rule}"), |one| format!("replaced {one} by {rule}"));
        let undo = undo(existing.as_ref(), &Sets::now());
        report(output, &said, (1, usize::from(existing.is_some())), undo)
    }
}

impl Del {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        if self.all {
            return self.all(output);
        }
        let target = self.target.target()?;
        let before = Sets::now();
        let undo =
            |rule: &Rule, after: &Sets| Undo::adding(std::slice::from_ref(rule), &before, after, false);
        if self.dry_run {
            let rules = select::selection()?.unwrap_or_default().rules;
            let rule = rules.iter().find(|rule| rule.target == target);
            let rule = rule.ok_or_else(|| onramp_loader::Error::NoRule { target: target.to_string() })?;
            let undo = undo(rule, &Sets::default()).command.unwrap_or_default();
            return plan::print(&[Action { what: format!("remove {rule}"), undo }], output);
        }
        let rule = select::remove(&target)?;
        let undo = undo(&rule, &Sets::now());
        report(output, &format!("removed {rule}"), (0, 1), undo)
    }

    fn all(&self, output: &Output) -> anyhow::Result<u8> {
        if self.dry_run {
            let actions = select::selection()?.map(|Selection { rules, .. }| Action {
                what: format!("remove {} and the program", count(rules.len(), "rule")),
                undo: String::new(),
            });
            return plan::print(&Vec::from_iter(actions), output);
        }
        if let Some(kept) = &self.keep {
            keep(kept, &select::selection()?.unwrap_or_default().rules)?;
        }
        let before = Sets::now();
        let rules = select::clear()?;
        let said = rules.as_ref().map_or_else(
            || "there are no rules".to_owned(),
            |rules| format!("removed {} and the program", count(rules.len(), "rule")),
        );
        let rules = rules.unwrap_or_default();
        let undo = match &self.keep {
            Some(kept) if !rules.is_empty() => Undo::loading(kept, &rules, &before, &Sets::now()),
            _ => Undo::adding(&rules, &before, &Sets::now(), false),
        };
        report(output, &said, (0, rules.len()), undo)
    }
}

impl List {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        let selection = select::selection()?.unwrap_or_default();
        let missing = Missing::new(&selection.rules)?;
        let rows = selection.rules.iter().map(|rule| row(rule, &missing));
        let holds_in = selection.holds_in.as_ref().map(ToString::to_string);
        let listing = Listing { active: selection.active, holds_in, rules: rows.collect() };
        output.data(&listing, || {
            let mut text = String::new();
            if let Some(cgroup) = &listing.holds_in {
                text += &format!("# in use in cgroup {} and below it alone, where the program sits: on the host the next change of a rule has them hold everywhere\n", escape_line(cgroup));
            } else if !selection.active && !selection.rules.is_empty() {
                text += "# not in use: a command was cut off, or the pin `link` was removed; the next change of a rule mends it\n";
            }
            for rule in &selection.rules {
                text += &line(rule, &missing);
            }
            if selection.rules.is_empty() { "# no rules\n".into() } else { text }
        })?;
        Ok(0)
    }
}

impl Load {
    fn run(self, output: &Output) -> anyhow::Result<u8> {
        select::require()?;
        let path = bounded::name(&self.file).to_string();
        let text = bounded::read_text(&self.file).with_context(|| format!("cannot read {path}"))?;
        let mut controls = Controls::default();
        let rules = words::rules(&text, &path, &mut controls)?;
        if rules.len() > select::RULES_MAX {
            return Err(onramp_loader::Error::TooManyRules { most: select::RULES_MAX }.into());
        }
        let by = count(rules.len(), "rule");
        if self.dry_run {
            let existing = select::selection()?.unwrap_or_default().rules;
            let undo = self.undo(&existing, &Sets::now(), &Sets::default()).command.unwrap_or_default();
            let what = format!("replace {} by {by}", count(existing.len(), "rule"));
            return plan::print(&[Action { what, undo }], output);
        }
        let kept = match &self.keep {
            Some(path) => {
                let rules = select::selection()?.unwrap_or_default().rules;
                keep(path, &rules)?;
                rules
            }
            None => Vec::new(),
        };
        let before = Sets::now();
        let replaced = select::replace(&rules, &controls.made)?;
        let undo = match (replaced, self.keep.is_some()) {
            (0, _) => self.undo(&[], &before, &Sets::default()),
            (_, true) => self.undo(&kept, &before, &Sets::now()),
            (replaced, false) => Undo::not_kept(replaced),
        };
        let said = format!("replaced {} by {by}", count(replaced, "rule"));
        report(output, &said, (rules.len(), replaced), undo)
    }

    /// What brings these rules back.
    fn undo(&self, existing: &[Rule], before: &Sets, after: &Sets) -> Undo {
        match &self.keep {
            _ if existing.is_empty() => Undo::by("onramp select del --all".into()),
            Some(kept) => Undo::loading(kept, existing, before, after),
            None => Undo::not_kept(existing.len()),
        }
    }
}

/// The first rules in words, for a look now and then.
#[derive(Serialize)]
pub(super) struct RulesSummary {
    active: bool,
    rules: usize,
    first: Vec<String>,
    /// Why they cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

impl RulesSummary {
    /// At most so many rules; `None`: there is no selection.
    pub fn read(most: usize) -> Option<Self> {
        match select::peek() {
            Ok(selection) => selection.map(|Selection { rules, active, .. }| {
                let missing = Missing::new(&rules).unwrap_or_default();
                let first = rules.iter().take(most).map(|rule| line(rule, &missing).trim_end().to_owned());
                Self { active, rules: rules.len(), first: first.collect(), unknown: None }
            }),
            Err(error) => {
                Some(Self { active: false, rules: 0, first: Vec::new(), unknown: Some(error.to_string()) })
            }
        }
    }
}

/// Writes rules to a new file.
fn keep(path: &Path, rules: &[Rule]) -> anyhow::Result<()> {
    if bounded::is_standard(path) {
        return Err(Usage::error("--keep needs a file of its own: `onramp select list` prints the rules"));
    }
    let text: String = rules.iter().map(|rule| line(rule, &Missing::default())).collect();
    let mut file = fs::File::create_new(path)
        .map_err(|error| Usage::error(format!("cannot make {} for --keep: {error}", path.display())))?;
    std::io::Write::write_all(&mut file, text.as_bytes())
        // What has been kept in part is dropped.
        .inspect_err(|_| drop(fs::remove_file(path)))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// What rules name and what is not there.
#[derive(Default)]
struct Missing {
    controls: BTreeSet<String>,
    /// By control and profile.
    profiles: BTreeSet<(String, String)>,
    /// Controls that do not start from what is known of a path.
    starts: BTreeSet<String>,
}

impl Missing {
    fn new(rules: &[Rule]) -> anyhow::Result<Self> {
        Ok(Self {
            controls: missing_controls(rules)?,
            profiles: select::missing_profiles(rules),
            starts: select::missing_starts(rules),
        })
    }

    fn control(&self, rule: &Rule) -> bool {
        self.controls.contains(&rule.choice.control)
    }

    fn profile<'a>(&self, rule: &'a Rule) -> Option<&'a str> {
        let profile = rule.choice.profile.as_ref()?;
        self.profiles.contains(&(rule.choice.control.clone(), profile.clone())).then_some(profile)
    }

    fn start(&self, rule: &Rule) -> bool {
        rule.choice.resume.is_some() && self.starts.contains(&rule.choice.control)
    }
}

/// A rule as a line of a file; what has no effect is said in a comment.
fn line(rule: &Rule, missing: &Missing) -> String {
    if rule.is_orphan() {
        return format!("# {rule}  # its cgroup is gone: `onramp select del {}` removes it\n", rule.target);
    }
    let control = &rule.choice.control;
    let note = if missing.control(rule) {
        format!("  # {control} is not registered: as without a rule")
    } else if missing.start(rule) {
        format!(
            "  # {control} as it is attached does not start from a known path: `onramp upgrade {control} --start resume` mends it, but over BBR"
        )
    } else {
        missing.profile(rule).map_or_else(String::new, |profile| {
            format!(
                "  # {control} has no profile {profile} now: as without it; `onramp select load` mends it"
            )
        })
    };
    format!("{rule}{note}\n")
}

fn row(rule: &Rule, missing: &Missing) -> RuleRow {
    let Target { to, port, cgroup, side } = &rule.target;
    RuleRow {
        to: to.map(|prefix| prefix.to_string()),
        port: *port,
        cgroup: cgroup.as_ref().and_then(|cgroup| cgroup.path.clone()),
        cgroup_id: cgroup.as_ref().map(|cgroup| cgroup.id),
        side: side.name(),
        choice: rule.choice.name().to_owned(),
        congestion_control: rule.choice.control.clone(),
        profile: rule.choice.profile.clone(),
        initial_window_segments: rule.choice.initial_window,
        resume_rate_bits_per_s: rule.choice.resume.map(|path| u64::from(path.kbps) * 1_000),
        resume_rtt_us: rule.choice.resume.map(|path| path.rtt_us),
        registered: !missing.control(rule),
        profile_missing: missing.profile(rule).is_some(),
    }
}

/// `rules`: how many were added, and removed.
fn report(output: &Output, said: &str, rules: (usize, usize), undo: Undo) -> anyhow::Result<u8> {
    let text = format!("{said}\n{}", undo.text());
    let Undo { command, leaves_out } = undo;
    let (rules_added, rules_removed) = rules;
    let report = RulesReport { rules_added, rules_removed, undo: command, undo_leaves_out: leaves_out };
    output.report(&report, || text);
    Ok(0)
}
