//! The flows that are sampled.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use onramp_net::sock_diag::Socket;

use super::owner::Owner;
use super::would_have::WouldHave;
use crate::filter::Filter;
use crate::limits::{Account, Sample};

/// Flows that are kept, those that have ended included; more are counted.
const FLOWS: usize = 10_000;

/// A flow with the account of its time.
pub(super) struct WatchedFlow {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub cookie: u64,
    pub congestion_control: String,
    pub account: Account,
    /// Of a file's flow.
    pub would_have: Option<WouldHave>,
    /// Number of the dump that had it last.
    dump: u64,
}

impl WatchedFlow {
    /// A flow of a file, by its number there and the name of its control.
    pub fn of_file(
        local: SocketAddr,
        remote: SocketAddr,
        (cookie, congestion_control): (u64, String),
        account: Account,
        would_have: Option<WouldHave>,
    ) -> Self {
        Self { local, remote, cookie, congestion_control, account, would_have, dump: 0 }
    }
}

/// All flows that match.
pub(super) struct Watched {
    filter: Filter,
    owner: Option<Owner>,
    open: BTreeMap<u64, WatchedFlow>,
    ended: Vec<WatchedFlow>,
    /// Sockets of other processes: by cookie the number of the dump that had them last.
    strangers: HashMap<u64, u64>,
    dump: u64,
    /// The owner's sockets were read in this dump.
    is_fresh: bool,
    /// Flows beyond those that are kept.
    too_many: HashSet<u64>,
}

impl Watched {
    pub fn new(filter: Filter, owner: Option<Owner>) -> Self {
        Self {
            filter,
            owner,
            open: BTreeMap::new(),
            ended: Vec::new(),
            strangers: HashMap::new(),
            dump: 0,
            is_fresh: false,
            too_many: HashSet::new(),
        }
    }

    pub fn begin_dump(&mut self) {
        self.dump += 1;
        self.is_fresh = false;
    }

    /// Takes a socket as it is then, microseconds since the begin.
    pub fn take(&mut self, at_us: u64, socket: &Socket) {
        let Some(sample) = Sample::new(at_us, socket) else { return };
        if let Some(flow) = self.open.get_mut(&socket.cookie) {
            flow.dump = self.dump;
            flow.account.add(sample);
            return;
        }
        if !self.filter.matches(socket.local, socket.remote) || !self.owns(socket) {
            return;
        }
        if self.open.len() + self.ended.len() >= FLOWS {
            self.too_many.insert(socket.cookie);
            return;
        }
        let flow = WatchedFlow {
            local: socket.local,
            remote: socket.remote,
            cookie: socket.cookie,
            congestion_control: socket.congestion_control.clone().unwrap_or_default(),
            account: Account::new(sample),
            would_have: None,
            dump: self.dump,
        };
        self.open.insert(socket.cookie, flow);
    }

    fn owns(&mut self, socket: &Socket) -> bool {
        let Some(owner) = &mut self.owner else { return true };
        if let Some(dump) = self.strangers.get_mut(&socket.cookie) {
            *dump = self.dump;
            return false;
        }
        // Not accepted yet, or closed.
        if socket.inode == 0 {
            return false;
        }
        if !owner.has(socket.inode) && !self.is_fresh {
            owner.refresh();
            self.is_fresh = true;
        }
        let owns = owner.has(socket.inode);
        if !owns {
            self.strangers.insert(socket.cookie, self.dump);
        }
        owns
    }

    /// Hands out the flows that have ended since.
    pub fn end_dump(&mut self) -> Vec<WatchedFlow> {
        let dump = self.dump;
        self.strangers.retain(|_, last| *last == dump);
        let gone = self.open.iter().filter(|(_, flow)| flow.dump != dump).map(|(cookie, _)| *cookie);
        let gone: Vec<u64> = gone.collect();
        gone.iter().filter_map(|cookie| self.open.remove(cookie)).collect()
    }

    /// Samples of all flows.
    pub fn samples(&self) -> u64 {
        self.ended.iter().chain(self.open.values()).map(|flow| flow.account.samples).sum()
    }

    /// Keeps a flow that was not sampled.
    pub fn keep_one(&mut self, flow: WatchedFlow, has_ended: bool) {
        if self.open.len() + self.ended.len() >= FLOWS {
            self.too_many.insert(flow.cookie);
        } else if has_ended {
            self.ended.push(flow);
        } else {
            self.open.insert(flow.cookie, flow);
        }
    }

    /// Keeps flows that have ended.
    pub fn keep(&mut self, ended: Vec<WatchedFlow>) {
        self.ended.extend(ended);
    }

    /// All that are kept, with whether they have ended, and the number of those that are not kept.
    pub fn finish(self) -> (Vec<(WatchedFlow, bool)>, usize) {
        let ended = self.ended.into_iter().map(|flow| (flow, true));
        let open = self.open.into_values().map(|flow| (flow, false));
        (ended.chain(open).collect(), self.too_many.len())
    }
}
