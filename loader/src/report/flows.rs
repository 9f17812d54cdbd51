//! Flows on our controls, read from sock_diag and socket storage: no daemon, nothing in the path of a packet.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{MapData, MapError, MapType};
use onramp_algorithm::{
    Ack, Algorithm, ExitReason, Export, INITIAL_WINDOW, Parameters, Reading, StartEnd, StartPhase, Track,
};
use onramp_net::sock_diag::{self, SockDiag, Socket, SocketMemory, States, TcpInfo, TcpState};

use crate::object::abi::{Base, Counters, ExitRecord, FlowHeader, FlowTelemetry, Start, flow_flag, read};
use crate::object::algorithms;
use crate::pins::parameters::{self, ParameterSet};
use crate::pins::{self, FLOW_TELEMETRY, FLOWS, Pins};
use crate::pins::{code, profiles};
use crate::system::error::Error;
use crate::system::{clock, kernel};

/// Where a flow stands.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// It has no state ([`Flow::in_initial_window`], or the base runs alone), or has not been in slow start since it had.
    Unknown,
    /// In its first slow start.
    SlowStart,
    /// The exit is decided, the window is being drained.
    Exiting(ExitReason, ExitRecord),
    /// Its first slow start is over.
    Left(ExitReason, ExitRecord),
    /// Was past its start when this control took it.
    Adopted,
}

/// One TCP flow on one of our controls.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Local address.
    pub local: SocketAddr,
    /// Remote address.
    pub remote: SocketAddr,
    /// Connection state.
    pub state: TcpState,
    /// The kernel's id of the socket.
    pub cookie: u64,
    /// The interface that it is bound to; 0: none.
    pub interface: u32,
    /// The number of its cgroup; `None` where the kernel has no cgroups.
    pub cgroup_id: Option<u64>,
    /// The algorithm that drives it.
    pub algorithm: Algorithm,
    /// Its base; `None` if the flow runs code that has been detached, or that another build attached.
    pub base: Option<Base>,
    /// Another build of onramp attached the algorithm: this one would misread what is kept of the flow.
    pub other_build: bool,
    /// The pins of the algorithm cannot be read: [`unreadable`] says why.
    pub unreadable: bool,
    /// Name of its parameter set; `None` as for the base.
    pub profile: Option<String>,
    /// What the kernel says of it.
    pub info: TcpInfo,
    /// Its memory for sending.
    pub memory: SocketMemory,
    /// What the shell keeps of it; `None` in its initial window, and where the base runs alone.
    pub header: Option<FlowHeader>,
    /// What is also kept of it once it had a subscriber, or where it is only observed.
    pub telemetry: Option<FlowTelemetry>,
    /// What is remembered of its path, and how far it has come with that; `None`: it did not start from memory.
    pub start: Option<Start>,
    /// Those of its parameter set.
    parameters: Option<Parameters>,
    storage: Vec<u8>,
}

impl Flow {
    /// Where the flow stands.
    pub fn phase(&self) -> Phase {
        self.header.as_ref().map_or(Phase::Unknown, phase)
    }

    /// Time since its first data was sent in which the application had given nothing to send; `None`: not known when that
    /// was.
    pub fn idle_us(&self) -> Option<u64> {
        let start_us = self.header.as_ref().map(|header| header.start_us).filter(|us| *us != 0)?;
        let since_us = (clock::monotonic_ns() / 1_000).saturating_sub(start_us);
        Some(since_us.saturating_sub(self.info.busy_time_us))
    }

    /// Whether its application has given no more to send, so far, than an initial window holds: it has no state yet.
    pub fn in_initial_window(&self) -> bool {
        let TcpInfo { bytes_sent, bytes_retrans, notsent_bytes, snd_mss, .. } = self.info;
        let given = bytes_sent.saturating_sub(bytes_retrans) + u64::from(notsent_bytes);
        self.header.is_none() && given <= u64::from(INITIAL_WINDOW) * u64::from(snd_mss)
    }

    /// Where the algorithm would have left, if it is attached to observe and would have.
    pub fn observed(&self) -> Option<ExitRecord> {
        self.telemetry.map(|kept| kept.observed).filter(|record| record.reason != 0)
    }

    /// The algorithm's exports with their values.
    pub fn exports(&self) -> Vec<(Export, Vec<u32>)> {
        exports(self.algorithm, &self.storage)
    }

    /// The first value of one export.
    pub fn export(&self, name: &str) -> Option<u32> {
        self.algorithm.exports().find(|export| export.name == name)?.read_first(state(&self.storage)?)
    }

    /// The value that its algorithm shows over time, and the limit at which slow start ends.
    pub fn evidence(&self) -> Option<(Track, Reading)> {
        let state = state(&self.storage)?;
        let ack = Ack { cwnd: self.info.snd_cwnd, mss: self.info.snd_mss, ..Ack::default() };
        Some((self.algorithm.track()?, self.parameters.as_ref()?.read_track(state, &ack)))
    }
}

impl Start {
    /// How far the connection has come.
    pub fn phase(&self) -> Option<StartPhase> {
        StartPhase::from_number(self.phase)
    }

    /// Why its start is over; `None`: it is not.
    pub fn end(&self) -> Option<StartEnd> {
        StartEnd::from_number(self.end)
    }

    /// The window that it jumped to, segments.
    pub fn jump(&self) -> Option<u32> {
        Some(self.target).filter(|target| *target > 0)
    }
}

/// The algorithm's state in a flow's storage.
pub fn state(storage: &[u8]) -> Option<&[u8]> {
    storage.get(size_of::<FlowHeader>()..)
}

/// The exports of an algorithm with their values in a flow's storage.
pub fn exports(algorithm: Algorithm, storage: &[u8]) -> Vec<(Export, Vec<u32>)> {
    let Some(state) = state(storage) else { return Vec::new() };
    algorithm.exports().map(|export| (export, export.read(state))).collect()
}

/// The phase that a header shows.
pub fn phase(header: &FlowHeader) -> Phase {
    match ExitReason::from_number(header.exit.reason.into()) {
        Some(reason) if header.has(flow_flag::EXITING) => Phase::Exiting(reason, header.exit),
        Some(reason) => Phase::Left(reason, header.exit),
        None if header.has(flow_flag::ADOPTED) => Phase::Adopted,
        None if header.has(flow_flag::STARTED) => Phase::SlowStart,
        None => Phase::Unknown,
    }
}

/// A map of socket storage.
struct StorageMap {
    map: MapData,
    id: u32,
}

impl StorageMap {
    /// That of the starts from memory, which all algorithms share.
    fn of_starts() -> Option<Self> {
        let map = MapData::from_pin(profiles::path(profiles::STARTS)).ok()?;
        let id = map.info().ok()?.id();
        Some(Self { map, id })
    }

    fn open(pins: &Pins, name: &'static str) -> Result<Self, Error> {
        let map = MapData::from_pin(pins.path(name)).map_err(pins.failed("open", name))?;
        let info = map.info().map_err(pins.failed("ask about", name))?;
        let kind = info.map_type().map_err(pins.failed("ask about", name))?;
        if kind != MapType::SkStorage {
            return Err(pins.failed("use", name)(MapError::InvalidMapType { map_type: kind as u32 }));
        }
        let id = info.id();
        Ok(Self { map, id })
    }
}

/// Fails unless the storage of an algorithm's flows can be used.
pub(crate) fn require_storages(pins: &Pins) -> Result<(), Error> {
    StorageMap::open(pins, FLOWS)?;
    StorageMap::open(pins, FLOW_TELEMETRY).map(|_| ())
}

/// The socket storage of an attached algorithm, for a caller that lists sockets itself.
pub struct FlowStorage {
    algorithm: Algorithm,
    pins: Pins,
    flows: StorageMap,
    telemetry: StorageMap,
    base: Base,
    sets: Vec<ParameterSet>,
}

impl FlowStorage {
    /// Opens the storage of an attached algorithm.
    ///
    /// # Errors
    /// [`Error::NotAttached`], [`Error::OtherBuild`], or a map that cannot be opened.
    pub fn open(algorithm: Algorithm) -> Result<Self, Error> {
        let pins = parameters::attached(algorithm)?;
        let sets = parameters::sets(&pins)?;
        let base = Base::from_number(pins.attachment()?.base);
        let (flows, telemetry) = (StorageMap::open(&pins, FLOWS)?, StorageMap::open(&pins, FLOW_TELEMETRY)?);
        Ok(Self { algorithm, pins, flows, telemetry, base, sets })
    }

    /// The map, for a sock_diag request.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.flows.map.fd().as_fd()
    }

    /// What the control has counted since it was attached.
    ///
    /// # Errors
    /// A map that cannot be read.
    pub fn counters(&self) -> Result<Counters, Error> {
        self.pins.counters()
    }
}

/// Lists the flows of the current network namespace that use our controls and that `keep` keeps.
///
/// # Errors
/// [`Error::Privilege`], or what sock_diag or the pinned maps refuse.
pub fn flows(keep: impl Fn(&Socket) -> bool) -> Result<Vec<Flow>, Error> {
    kernel::require_privilege("flows")?;
    let (mut storages, mut other_builds, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for algorithm in pins::pinned()? {
        match FlowStorage::open(algorithm) {
            Ok(storage) => storages.push(storage),
            Err(Error::OtherBuild { .. }) => other_builds.push(algorithm),
            Err(error) if is_broken(algorithm, &error) => broken.push(algorithm),
            // Half attached, or detached meanwhile.
            Err(_) => {}
        }
    }
    let older = code::older_flows(&storages.iter().map(|storage| storage.flows.id).collect::<Vec<_>>());
    let starts = StorageMap::of_starts();
    let ours = storages.iter().flat_map(|storage| [&storage.flows.map, &storage.telemetry.map]);
    let shared = starts.iter().map(|starts| &starts.map);
    let fds: Vec<BorrowedFd<'_>> = ours.chain(shared).chain(&older).map(|map| map.fd().as_fd()).collect();
    let mut flows = Vec::new();
    SockDiag::open()?.dump(States::CONNECTED, &fds, |mut socket| {
        let control = socket.congestion_control.as_deref();
        let Some(algorithm) = control.and_then(algorithms::find_control) else { return };
        if keep(&socket) {
            let start = starts.as_ref().and_then(|starts| take(&mut socket.storages, starts.id));
            let storage = storages.iter().find(|storage| storage.algorithm == algorithm);
            flows.push(Flow {
                other_build: other_builds.contains(&algorithm),
                unreadable: broken.contains(&algorithm),
                start: start.and_then(|bytes| Some(read(&bytes)?.0)),
                ..describe(socket, algorithm, storage)
            });
        }
    })?;
    Ok(flows)
}

/// Attached algorithms whose pins cannot be read, and why: [`flows`] knows no state of their flows.
///
/// # Errors
/// [`Error::Io`] where this process may not look.
pub fn unreadable() -> Result<Vec<(Algorithm, String)>, Error> {
    let broken = |algorithm: Algorithm| {
        let error = FlowStorage::open(algorithm).err().filter(|error| is_broken(algorithm, error))?;
        Some((algorithm, kernel::reason(error)))
    };
    Ok(pins::pinned()?.into_iter().filter_map(broken).collect())
}

/// Whether an error is that of a pin: the algorithm is attached, by this build, and no command has detached it meanwhile.
fn is_broken(algorithm: Algorithm, error: &Error) -> bool {
    matches!(error, Error::Map { .. } | Error::Bpf { .. } | Error::Io { .. })
        && parameters::attached(algorithm).is_ok()
}

/// Algorithms of which older code is loaded, or may be (without CAP_SYS_ADMIN all): a flow of theirs that has no state may
/// run that.
///
/// # Errors
/// [`Error::Bpf`] for want of descriptors or memory.
pub fn older_code() -> Result<Vec<Algorithm>, Error> {
    let loaded = code::loaded()?;
    let has_older = |algorithm: &Algorithm| {
        loaded.is_none() || !code::unpinned(&loaded, &Pins::new(*algorithm)).is_empty()
    };
    Ok(algorithms::all().filter(has_older).collect())
}

/// The ports of the current network namespace with a listening socket.
///
/// # Errors
/// What sock_diag refuses.
pub fn listening_ports() -> Result<BTreeSet<u16>, Error> {
    let mut ports = BTreeSet::new();
    SockDiag::open()?.dump(States::LISTEN, &[], |socket| {
        ports.insert(socket.local.port());
    })?;
    Ok(ports)
}

/// What one map keeps of a socket.
fn take(storages: &mut Vec<sock_diag::Storage>, map_id: u32) -> Option<Vec<u8>> {
    let at = storages.iter().position(|storage| storage.map_id == map_id)?;
    Some(storages.swap_remove(at).value)
}

fn describe(mut socket: Socket, algorithm: Algorithm, attached: Option<&FlowStorage>) -> Flow {
    // A flow has the storage of the control it is on and of no other: leaving a control deletes it. That of an earlier
    // attachment shows that it runs its code.
    let telemetry = attached.and_then(|attached| take(&mut socket.storages, attached.telemetry.id));
    let attached =
        attached.filter(|attached| socket.storages.iter().all(|storage| storage.map_id == attached.flows.id));
    let storage = attached.and_then(|attached| take(&mut socket.storages, attached.flows.id));
    let storage = storage.unwrap_or_default();
    let header = FlowHeader::read(&storage);
    let set = header.zip(attached).and_then(|(header, attached)| {
        attached.sets.iter().find(|set| set.number == u32::from(header.profile))
    });
    Flow {
        local: socket.local,
        remote: socket.remote,
        state: socket.state,
        cookie: socket.cookie,
        interface: socket.interface,
        cgroup_id: socket.cgroup_id,
        algorithm,
        base: attached.map(|attached| attached.base),
        other_build: false,
        unreadable: false,
        profile: set.map(|set| set.profile.clone()),
        info: socket.info.unwrap_or_default(),
        memory: socket.memory.unwrap_or_default(),
        header,
        telemetry: header.and(telemetry).and_then(|bytes| Some(read(&bytes)?.0)),
        start: None,
        parameters: set.map(|set| set.parameters.clone()),
        storage,
    }
}
