//! What can go wrong, each with what to do about it.

mod advice;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use onramp_algorithm::ParameterError;
use onramp_algorithm::outside::OutsideError;
use onramp_net::namespace::NamespaceError;
use onramp_net::receiver::ReceiverError;
use onramp_net::route::RouteError;
use onramp_net::sock_diag::SockDiagError;

pub use advice::quoted;
pub(crate) use advice::{REMEDY_PART, remedy_taken};
use advice::{lasting, log_note, meant};

/// An error of this library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process may not do this.
    #[error("{verb} needs {capabilities} on this host (run it as root, outside of user namespaces)")]
    Privilege {
        /// What was asked for.
        verb: &'static str,
        /// The capabilities it takes.
        capabilities: &'static str,
    },
    /// The kernel cannot do this.
    #[error("this kernel cannot run onramp's congestion controls: {missing}; {advice}")]
    Unsupported {
        /// What it lacks.
        missing: String,
        /// What to do.
        advice: &'static str,
    },
    /// No algorithm of this name.
    #[error("there is no algorithm {name:?}{}: choose one of {known}", meant(name, known))]
    UnknownAlgorithm {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// An object that is no algorithm, or not for this onramp.
    #[error(transparent)]
    Outside(#[from] OutsideError),
    /// A parameter setting that is not valid.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// No parameter set of this name.
    #[error("{algorithm} has no profile {profile:?}{}: it has {known}", meant(profile, known))]
    UnknownProfile {
        /// The algorithm.
        algorithm: &'static str,
        /// What was asked for.
        profile: String,
        /// What there is.
        known: String,
    },
    /// No room for one more parameter set.
    #[error(
        "{most} profiles are the most that rules may name at once ({profiles}): remove the rules of one first"
    )]
    TooManyProfiles {
        /// How many there may be.
        most: usize,
        /// Those that there are.
        profiles: String,
    },
    /// A profile for what is no algorithm.
    #[error("{control} is a control of the kernel, which has no profiles: leave --profile {profile:?} out")]
    NoProfiles {
        /// The control.
        control: String,
        /// The profile that was asked for.
        profile: String,
    },
    /// Already attached.
    #[error(
        "{algorithm} is attached already (generation {generation:x}): `onramp tune {algorithm}` changes its parameters, `onramp upgrade {algorithm} --base BASE --after-exit OPTIONS` its base and its options, `onramp attach {algorithm} --for TIME` its time limit; for anything else `onramp detach {algorithm}` first"
    )]
    AlreadyAttached {
        /// The algorithm.
        algorithm: &'static str,
        /// Its attachment.
        generation: u64,
    },
    /// The name is registered, but not through our pins.
    #[error(
        "the kernel has a congestion control {name} that is not pinned under {root}: it was attached by other means: end the process or remove the pin that holds its link (`bpftool -f link show` names both), or without a link `bpftool struct_ops unregister` it"
    )]
    Foreign {
        /// The congestion control.
        name: String,
        /// Where ours are pinned.
        root: &'static str,
    },
    /// An earlier attach or detach was cut off, or pins were removed by other means.
    #[error(
        "{algorithm} is half attached, by an interrupted command or because pins were removed; run `onramp detach {algorithm}`, then try again"
    )]
    Interrupted {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// An upgrade was cut off.
    #[error(
        "an upgrade of {algorithm} was cut off: run `onramp upgrade {algorithm}` to finish it, or `onramp detach {algorithm}`"
    )]
    UpgradeCutOff {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// What another onramp attached cannot be taken over as it is.
    #[error(
        "what {algorithm} has now cannot be taken over: {why}; `onramp detach {algorithm}`, then attach it anew"
    )]
    NotTakenOver {
        /// The algorithm.
        algorithm: &'static str,
        /// Reason.
        why: String,
    },
    /// Consumers of telemetry that would misread events from then on.
    #[error(
        "{algorithm} cannot be upgraded while consumers of telemetry would misread its events from then on ({listeners}): end them, then try again"
    )]
    Listening {
        /// The algorithm.
        algorithm: &'static str,
        /// Names and processes.
        listeners: String,
    },
    /// No room for one more record of a previous default.
    #[error(
        "the previous defaults of {most} network namespaces are recorded for {algorithm}, which is the maximum, and none of these namespaces is known to have ended: detach {algorithm} where it is not needed, or use rules of onramp select, which hold in all network namespaces"
    )]
    TooManyDefaults {
        /// The algorithm.
        algorithm: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// Not attached.
    #[error("{algorithm} is not attached; `onramp attach {algorithm}` attaches it")]
    NotAttached {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// The kernel's flows cannot be watched.
    #[error(
        "this kernel's flows cannot be shadowed: it has no tracepoint {name} for BPF; use Linux 6.1 or newer with BTF and tracepoints (CONFIG_TRACEPOINTS)"
    )]
    NoTracepoint {
        /// The first that is missing.
        name: &'static str,
    },
    /// No base is named, and the default of the network namespace cannot be one.
    #[error(
        "no base is named, and {control}, the default of this network namespace, cannot be one: say what follows slow start, by --base cubic, reno or bbr (in a file of `onramp apply`: base = \"cubic\")"
    )]
    NoBase {
        /// The default.
        control: String,
    },
    /// A base that this kernel does not offer.
    #[error(
        "base cubic is not available: the kernel does not offer {missing} to BPF (since 5.13 on x86-64, 6.10 elsewhere); use --base reno"
    )]
    NoCubic {
        /// The first function missing.
        missing: &'static str,
    },
    /// BBR cannot be the base on this kernel, or not now.
    #[error("base bbr is not available: {missing}; {advice}")]
    NoBbr {
        /// What is missing, or in the way.
        missing: String,
        /// What to do.
        advice: &'static str,
    },
    /// An algorithm that goes on after the exit, where BBR is to be as the kernel has it.
    #[error(
        "{algorithm} cannot have base bbr (named, or the default of this network namespace): it bounds the window after slow start, too; use --base cubic or reno"
    )]
    BbrAfterExit {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// An option for the start, or for what comes after the exit, that the base does not have.
    #[error(
        "base {base} (named, or the default of this network namespace) has no option {option} ({by}): leave it out, or use --base {bases}"
    )]
    NotOfBase {
        /// The option.
        option: &'static str,
        /// What chooses it on the command line.
        by: &'static str,
        /// The base.
        base: &'static str,
        /// The bases that have it.
        bases: String,
    },
    /// Paths to remember where nothing remembers any.
    #[error(
        "no attachment remembers paths: `onramp attach ALG --start resume+window`, or `onramp upgrade ALG --start resume+window`"
    )]
    NoStartPolicy,
    /// A path by another prefix than paths are remembered by.
    #[error(
        "{path} is a path by a prefix of {}, and this host remembers paths by {have}: `onramp paths set prefix={wanted}` first, which forgets all", .path.length()
    )]
    PathPrefix {
        /// The path.
        path: onramp_net::Prefix,
        /// Prefix lengths of this host, as the command line has them.
        have: String,
        /// ... by which it would remember the path.
        wanted: String,
    },
    /// A rule that says what is known of a path, for an algorithm whose code cannot pace as it is attached.
    #[error(
        "{algorithm} as it is attached cannot pace, which a start from what is known of a path needs: `onramp upgrade {algorithm} --start resume` first; in a file of `onramp apply`, start = \"resume\" in [attach.{algorithm}]"
    )]
    CannotStart {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// Options of the base where it is to run as if there were no algorithm.
    #[error(
        "what only observes leaves the base as the kernel has it: leave out {options}, or do not only observe"
    )]
    ObservesWith {
        /// The options, as on the command line.
        options: String,
    },
    /// libbpf or the verifier refused an object.
    #[error("cannot {action} {object}: {source}{}", log_note(.log))]
    Bpf {
        /// What was being done.
        action: &'static str,
        /// The object, map or link.
        object: String,
        /// libbpf's error.
        source: libbpf_rs::Error,
        /// The end of libbpf's own messages.
        log: String,
    },
    /// A pinned map cannot be used.
    #[error("cannot {action} map {path}: {source}")]
    Map {
        /// What was being done.
        action: &'static str,
        /// Where it is pinned.
        path: PathBuf,
        /// Reason.
        source: Box<aya::maps::MapError>,
    },
    /// A file, directory or process could not be dealt with.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A detach or upgrade that could not be finished.
    #[error(
        "{verb} of {algorithm} was done in part ({done}), and then: {source}; `onramp status` says what is left, and `onramp {verb} {algorithm}` goes on"
    )]
    DoneInPart {
        /// Detach or upgrade.
        verb: &'static str,
        /// The algorithm.
        algorithm: &'static str,
        /// What was done.
        done: String,
        /// Why not all of it.
        source: Box<Error>,
    },
    /// It was detached to be attached with other options.
    #[error("{algorithm} was detached, and could not be attached anew: {source}")]
    NotAttachedAnew {
        /// The algorithm.
        algorithm: &'static str,
        /// Reason.
        source: Box<Error>,
    },
    /// Another build of onramp attached it, whose maps this one would misread.
    #[error(
        "{algorithm} was attached by another onramp ({difference}): `onramp upgrade {algorithm}` has this one take over, or `onramp detach {algorithm}` clears it"
    )]
    OtherBuild {
        /// The algorithm.
        algorithm: &'static str,
        /// Its version, and in what it differs.
        difference: String,
    },
    /// The maps that all algorithms share are of another ABI.
    #[error(
        "telemetry is set up by another onramp (ABI {found}, this one has {expected}): `onramp upgrade` has this one take over what it has attached, or `onramp detach --all` clears it, and telemetry with it"
    )]
    OtherTelemetry {
        /// What is pinned.
        found: u32,
        /// What this library knows.
        expected: u32,
    },
    /// The attached algorithms report flows through maps that can no longer be found.
    #[error(
        "the pin {path} of telemetry was removed: attached algorithms go on, but no consumer can subscribe to their flows; `onramp detach --all` clears it, then attach it anew"
    )]
    TelemetryBroken {
        /// The pin.
        path: PathBuf,
    },
    /// Others have had the lock for longer than the caller waits.
    #[error(
        "another process ({holders}) has held the lock on {path}{}: wait for it to end, or end it",
        lasting(.waited)
    )]
    Locked {
        /// What is locked.
        path: &'static str,
        /// Its process ids.
        holders: String,
        /// How long this process has waited.
        waited: Duration,
    },
    /// Nothing can be pinned, and no pinned map can be opened.
    #[error(
        "{path} is mounted read-only (by another process); `mount -o remount,rw {path}` lets onramp work"
    )]
    ReadOnly {
        /// The BPF file system.
        path: &'static str,
    },
    /// What was pinned is out of sight.
    #[error(
        "no BPF file system is mounted at {path}: it was unmounted, and what is attached goes on unseen; `mount -t bpf bpf {path}` makes a new, empty one"
    )]
    NotMounted {
        /// Where it belongs.
        path: &'static str,
    },
    /// Another user could have put things where pins go.
    #[error(
        "{path} is not to be trusted: {why}; remove it, or have it be root's own (mount the BPF file system with mode=0700), then try again"
    )]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// Another user could have written what root is about to act on.
    #[error("{path} is not to be trusted: {why}; `{remedy} {path}`, if what it says is yours")]
    UntrustedFile {
        /// The file or directory.
        path: PathBuf,
        /// Reason.
        why: String,
        /// The command that makes it one to be trusted, without the path.
        remedy: &'static str,
    },
    /// The whole host has it, and its own network namespace alone shows it.
    #[error(
        "{name} belongs to the host, whose own network namespace alone shows it: run this there, for instance with `nsenter --target 1 --net`"
    )]
    OfTheHost {
        /// A sysctl.
        name: String,
    },
    /// A network namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The receiver could not be measured.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// Listing sockets.
    #[error(transparent)]
    SockDiag(#[from] SockDiagError),
    /// A route could not be asked for.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// No cgroup v2.
    #[error("no cgroup v2 hierarchy is mounted: `{remedy}`")]
    NoCgroup {
        /// A command that mounts it.
        remedy: String,
    },
    /// The root of cgroup v2 is out of sight.
    #[error(
        "{path} is not the root of the cgroup v2 hierarchy but a part of it, and rules there would hold for that part alone: {REMEDY_PART}"
    )]
    PartOfCgroups {
        /// Where a part of it is mounted.
        path: PathBuf,
    },
    /// Another process's program allows no other next to it.
    #[error(
        "cgroup {path} has a program of socket operations that allows no other next to it or below it ({name}, id {program}): {}",
        remedy_taken(path, *program)
    )]
    CgroupTaken {
        /// The cgroup's directory.
        path: PathBuf,
        /// The program's id.
        program: u32,
        /// Its name.
        name: String,
    },
    /// The same, where the program cannot be seen.
    #[error(
        "a cgroup above {path}, outside of this cgroup namespace, has a program of socket operations that allows no other below it: find it by `bpftool cgroup tree` on the host"
    )]
    CgroupTakenAbove {
        /// The uppermost cgroup that is seen.
        path: PathBuf,
    },
    /// No such cgroup.
    #[error(
        "there is no cgroup {path} ({why}): give the path of a directory below {root}, such as /system.slice"
    )]
    Cgroup {
        /// What was asked for.
        path: PathBuf,
        /// Where cgroups are.
        root: PathBuf,
        /// Reason.
        why: String,
    },
    /// No congestion control of this name.
    #[error(
        "there is no congestion control {name:?}{}: choose an algorithm that is attached ({known}) or a control of this kernel ({registered})",
        meant(name, &format!("{known}, {registered}"))
    )]
    UnknownControl {
        /// What was asked for.
        name: String,
        /// Algorithms.
        known: String,
        /// What the kernel has.
        registered: String,
    },
    /// Attached for a run, which will detach it.
    #[error(
        "{algorithm} is attached for `onramp run` (process {pid}) and goes with it: attach it by `onramp attach {algorithm}` when that has ended"
    )]
    AttachedForRun {
        /// The algorithm.
        algorithm: &'static str,
        /// The process of the run.
        pid: u32,
    },
    /// There is one rule for each target.
    #[error("there is a rule for {target} already ({rule}): --replace puts another in its place")]
    RuleExists {
        /// Its target, as options of the command line.
        target: String,
        /// The whole rule, as options of the command line.
        rule: String,
    },
    /// No such rule.
    #[error("there is no rule for {target}: `onramp select list` shows those that are there")]
    NoRule {
        /// As options of the command line.
        target: String,
    },
    /// More rules than a table holds.
    #[error("{most} rules are the most: join prefixes that have the same control")]
    TooManyRules {
        /// How many there may be.
        most: usize,
    },
    /// The rules go on deciding, and cannot be read.
    #[error(
        "the selection has lost its pin {path}: its rules go on deciding, but cannot be read or changed; run `onramp select del --all`, then add them anew"
    )]
    SelectionBroken {
        /// The pin.
        path: PathBuf,
    },
    /// What a consumer of telemetry wants cannot be.
    #[error("telemetry cannot be had with {what}")]
    Subscription {
        /// What, and what could be.
        what: String,
    },
    /// All slots are taken.
    #[error("{most} consumers of telemetry are the most, and there are so many: end one (processes {pids})")]
    TooManyConsumers {
        /// How many there may be.
        most: usize,
        /// The processes that read.
        pids: String,
    },
    /// An event that cannot be read.
    #[error("an event cannot be read: {why}")]
    Event {
        /// Reason.
        why: String,
    },
    /// The lease process has gone, so the kernel will not write any more.
    #[error(
        "telemetry has ended: its background process (onramp-lease) was killed, or all of this was frozen for long; begin again"
    )]
    LeaseLost,
}

impl Error {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
