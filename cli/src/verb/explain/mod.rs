//! `onramp explain`.

mod html;
mod owner;
mod recorded;
mod row;
mod text;
mod watched;
mod would_have;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use onramp_files::bounded;
use onramp_net::Namespace;
use onramp_net::sock_diag::{SockDiag, SockDiagError, States};

use crate::consumer::Signals;
use crate::failure::{self, PARTIAL, Usage};
use crate::filter::Filter;
use crate::output::{Output, printable, say, say_of_input};
use crate::units;
use owner::Owner;
use row::{FlowRow, Report, Source};
use watched::{Watched, WatchedFlow};

/// Between two samples, at least.
const INTERVAL: Duration = Duration::from_millis(20);
/// And of the time, this fraction at most is spent on them.
const SPENT: u32 = 5;
/// Without --for.
const DURATION: Duration = Duration::from_secs(10);

/// Say why transfers are slow: what each flow waited for, under any congestion control, with nothing attached
///
/// Samples the TCP sockets of this network namespace by sock_diag, as ss(8) does, and needs no privilege. For each flow that
/// sends it says for how long the application, the receiver's window, the send buffer, the congestion window in slow start,
/// in congestion avoidance or in recovery, pacing, a queue of this host or the path was the limit; when and why
/// slow start ended, and what that cost; and what to do.
///
/// FILE is a packet capture (pcap or pcapng) of the sender's side, 128 bytes of each packet or more, qlog of the sender's side
/// (0.3 or later), or a recording of `onramp record`; - is standard input. A capture shows no congestion window: it is inferred
/// from what is in flight.
///
/// FILTER as for ss(8): `src` or `dst` with PREFIX, PREFIX:PORT or :PORT; `sport` or `dport` with a comparison, such as `=
/// :443`, `!= :22`, `>= :1024`; `and`, `or`, `not` and parentheses, read from left to right.
///
/// Only what this host sends can be explained: explain a download at its server. The kernel counts idle time, and that of the
/// receive window and of the send buffer; all else is known to the time between two samples, 20 ms or more.
///
/// With a COMMAND, its connections and those of its children, until it ends; the exit code is the command's, 128 plus
/// the signal if one ended it, 127 or 126 if it cannot be started. A signal to onramp ends the command by SIGTERM.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onramp explain
  onramp explain dst 198.51.100.0/24 and dport = :443 --for 30s
  onramp explain --pid 4242 --for 1m
  onramp explain --follow --json | jq '.limited'
  onramp explain -- curl -T large https://example.org/upload
  onramp explain slow.pcap dst 198.51.100.7
  onramp explain server.sqlog --html >server.html
  tcpdump -c 100000 -s 128 -w - tcp port 443 | onramp explain -")]
pub(crate) struct Explain {
    /// Sample for this time: 30s, 10m, 2h [default: 10s; with --follow until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = units::time_limit, conflicts_with = "command")]
    duration: Option<Duration>,
    /// Only the connections of this process and of its children, in its network namespace
    #[arg(long, value_name = "PID", value_parser = units::number(1..=i32::MAX), conflicts_with = "command")]
    pid: Option<i32>,
    /// Print each flow when it ends
    #[arg(long)]
    follow: bool,
    /// Print a page (HTML) that shows the same, without scripts
    #[arg(long, conflicts_with_all = ["follow", "json", "pretty"])]
    html: bool,
    /// Packet capture, qlog or recording, in place of this host's sockets
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// Only flows that match, in the syntax of ss(8)
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Command with its arguments
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

impl Explain {
    pub fn run(mut self, output: &Output) -> anyhow::Result<u8> {
        let file = self.file.take_if(|word| is_file(word)).map(PathBuf::from);
        let words: Vec<String> = self.file.iter().chain(&self.filter).cloned().collect();
        let filter = Filter::parse(&words).map_err(|why| {
            let word = words.first().filter(|word| file.is_none() && !is_of_filter(word));
            let no_file = word.map(|word| format!("there is no file {word:?}; as a filter: "));
            Usage::error(format!("{}{why}", no_file.unwrap_or_default()))
        })?;
        if let Some(file) = file {
            return self.explain_file(&file, &filter, output);
        }
        let owner = self.pid.map(Owner::of).transpose()?;
        let diag = match &owner {
            Some(owner) => owner.diag()?,
            None => SockDiag::open()?,
        };
        // From here on a signal ends the watch instead of the process.
        let signals = Signals::take()?;
        let command = match self.start() {
            Ok(command) => command,
            Err(error) => {
                say(&format!("error: cannot start {:?}: {error}", self.command[0].to_string_lossy()));
                return Ok(failure::not_started(&error));
            }
        };
        let owner = owner.or_else(|| command.as_ref().map(|child| Owner::of_child(child.id())));
        let end = match (self.duration, self.follow || command.is_some()) {
            (None, false) => Some(DURATION),
            (duration, _) => duration,
        };
        if command.is_none() {
            output.progress("sampling flows …");
        }
        let mut sampling = Sampling {
            diag,
            watched: Watched::new(filter, owner),
            follow: self.follow.then_some(output),
            begin: Instant::now(),
            dumps: 0,
        };
        let status = sampling.until(end, &signals, command)?;
        let report = sampling.finish()?;
        if !self.follow {
            self.print(&report, output)?;
        }
        Ok(status.map_or(0, failure::of_command))
    }

    fn explain_file(&self, file: &Path, filter: &Filter, output: &Output) -> anyhow::Result<u8> {
        let live = [
            ("--for", self.duration.is_some()),
            ("--pid", self.pid.is_some()),
            ("--follow", self.follow),
            ("COMMAND", !self.command.is_empty()),
        ];
        if let Some((name, _)) = live.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Usage::error(format!(
                "{name} is for this host's sockets, and {} is a file: leave one of them out",
                bounded::name(file)
            )));
        }
        let recorded = recorded::read(file, filter)?;
        say_of_input(&recorded.problems, &recorded.notes);
        let samples = recorded.watched.samples();
        let mut report = Report::new(recorded.origin.into(), recorded.duration_us, samples, recorded.watched);
        report.filtered_out = recorded.filtered_out;
        self.print(&report, output)?;
        Ok(if recorded.problems.is_empty() { 0 } else { PARTIAL })
    }

    fn print(&self, report: &Report, output: &Output) -> anyhow::Result<()> {
        if self.html {
            return output.raw(html::page(report).as_bytes());
        }
        output.data(report, || text::report(report, output))
    }

    fn start(&self) -> io::Result<Option<Child>> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        Command::new(program).args(arguments).spawn().map(Some)
    }
}

/// Whether the first word begins a filter.
fn is_of_filter(word: &str) -> bool {
    ["src", "dst", "sport", "dport", "not", "any", "all"].contains(&word) || word.starts_with(['(', '!'])
}

/// Whether the first word names a file: no word of a filter does.
fn is_file(word: &str) -> bool {
    const KINDS: [&str; 6] = ["pcap", "pcapng", "cap", "parquet", "qlog", "sqlog"];
    let path = Path::new(word);
    let has_kind = path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known));
    !is_of_filter(word) && (bounded::is_standard(path) || path.exists() || has_kind)
}

/// A watch in progress.
struct Sampling<'a> {
    diag: SockDiag,
    watched: Watched,
    /// Where flows are printed when they end.
    follow: Option<&'a Output>,
    begin: Instant,
    dumps: u32,
}

impl Sampling<'_> {
    /// Samples until this time is over, the command has ended, or a signal comes; returns how the command ended.
    fn until(
        &mut self,
        end: Option<Duration>,
        signals: &Signals,
        mut command: Option<Child>,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let mut was_asked = false;
        loop {
            let before = self.begin.elapsed();
            self.sample()?;
            let took = self.begin.elapsed().saturating_sub(before);
            if let Some(child) = &mut command {
                if let Some(status) = child.try_wait()? {
                    return Ok(Some(status));
                }
                if signals.came() && !was_asked {
                    was_asked = true;
                    // It may have ended meanwhile.
                    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
                }
            } else if signals.came() || end.is_some_and(|end| self.begin.elapsed() >= end) {
                return Ok(None);
            }
            thread::sleep(INTERVAL.max(took * SPENT).saturating_sub(took));
        }
    }

    /// One sample of each flow.
    fn sample(&mut self) -> anyhow::Result<()> {
        let (watched, begin) = (&mut self.watched, self.begin);
        watched.begin_dump();
        match self.diag.dump(States::CONNECTED, &[], |socket| {
            watched.take(begin.elapsed().as_micros() as u64, &socket);
        }) {
            Ok(_) => self.dumps += 1,
            // Sockets came and went too fast: the next sample has them.
            Err(SockDiagError::Interrupted) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let ended = self.watched.end_dump();
        let Some(output) = self.follow else {
            self.watched.keep(ended);
            return Ok(());
        };
        ended.iter().try_for_each(|flow| print(flow, output))
    }

    fn finish(self) -> anyhow::Result<Report> {
        let report = Report::new(
            Source::SockDiag,
            self.begin.elapsed().as_micros() as u64,
            self.dumps.into(),
            self.watched,
        );
        if let Some(output) = self.follow {
            for flow in &report.flows {
                print_row(flow, output)?;
            }
        }
        Ok(report)
    }
}

/// A flow that has ended, if it sent anything.
fn print(flow: &WatchedFlow, output: &Output) -> anyhow::Result<()> {
    if flow.account.has_sent() { print_row(&FlowRow::new(flow, true), output) } else { Ok(()) }
}

fn print_row(row: &FlowRow, output: &Output) -> anyhow::Result<()> {
    if !output.json() {
        return output.raw(printable(&text::flow(row, output)).as_bytes());
    }
    let mut line = Vec::new();
    output.line(&mut line, row)?;
    output.raw(&line)
}

/// The network namespace of a process, if it is not this one.
fn namespace_of(pid: i32) -> anyhow::Result<Option<Namespace>> {
    let namespace = Namespace::open(format!("/proc/{pid}/ns/net"))?;
    Ok(Some(namespace).filter(|one| Namespace::current().map_or(true, |here| here.inode() != one.inode())))
}
