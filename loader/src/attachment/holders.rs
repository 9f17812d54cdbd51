//! What holds code that is attached no more, or no longer the newest: sockets, by their state and process.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use onramp_algorithm::Algorithm;
use onramp_net::sock_diag::TcpState;

use crate::attachment::migrate::{self, Iterators};
use crate::attachment::namespaces;
use crate::object::abi::{Holder, text};
use crate::pins::Pins;
use crate::pins::code::{self, Loaded};
use crate::system::error::Error;

/// How long the kernel may take to free code that nothing holds: grace periods, and the ends of connections.
const GRACE: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Sockets in one state, of one process, that have code which is detached or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// Their state.
    pub state: TcpState,
    /// They are listening, and connections that they accept do not run this code.
    pub only_listens: bool,
    /// Number and name of a process that has them open; `None`: no process has, or none that can be seen.
    pub process: Option<(u32, String)>,
    /// How many they are.
    pub sockets: usize,
}

/// Code of an algorithm that is loaded besides what is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Attachments whose code it is. 0 where this process may not ask.
    pub copies: usize,
    /// Those of them that only listening sockets hold: no connection runs them, and none will.
    pub idle: usize,
    /// The sockets that have it.
    pub by: Vec<HeldBy>,
    /// Attachments whose code no socket has that could be found.
    pub unexplained: usize,
}

impl Held {
    /// Whether connections may run it, now or later.
    pub fn may_run(&self) -> bool {
        self.copies > self.idle
    }
}

impl Holder {
    /// Whether it is listening, and connections that it accepts get what they would get without it.
    pub(crate) fn only_listens(&self) -> bool {
        self.tcp_state() == TcpState::Listen && self.chosen == 0
    }

    fn tcp_state(&self) -> TcpState {
        TcpState::from_raw(self.state)
    }
}

/// What holds old code of these algorithms, once the kernel had time to free what nothing holds. Waits, so the caller
/// should not hold the lock.
///
/// # Errors
/// What looking fails with.
pub fn held(algorithms: &[Algorithm]) -> Result<Vec<Held>, Error> {
    let freed = |algorithms: &[Algorithm], timeout| {
        let begin = Instant::now();
        loop {
            let loaded = code::loaded()?;
            let all_freed = algorithms.iter().all(|one| code::unpinned(&loaded, &Pins::new(*one)).is_empty());
            let waited = begin.elapsed();
            if all_freed || waited >= timeout {
                return Ok::<_, Error>(all_freed);
            }
            // What takes long is looked at less often.
            thread::sleep(LOOK.max(waited / 8));
        }
    };
    if freed(algorithms, GRACE)? {
        return Ok(vec![Held::default(); algorithms.len()]);
    }
    let found = now(algorithms)?;
    let unexplained = algorithms.iter().zip(&found).filter(|(_, held)| held.unexplained > 0);
    let unexplained: Vec<_> = unexplained.map(|(algorithm, _)| *algorithm).collect();
    if unexplained.is_empty() {
        return Ok(found);
    }
    freed(&unexplained, TIMEOUT - GRACE)?;
    now(algorithms)
}

/// What holds old code of these algorithms now.
pub(crate) fn now(algorithms: &[Algorithm]) -> Result<Vec<Held>, Error> {
    let loaded = code::loaded()?;
    let (mut iterators, mut of_processes) = (Iterators::default(), None);
    algorithms.iter().map(|one| look(&Pins::new(*one), &loaded, &mut of_processes, &mut iterators)).collect()
}

/// `of_processes`: asked for once.
pub(crate) fn look(
    pins: &Pins,
    loaded: &Loaded,
    of_processes: &mut Option<Vec<Holder>>,
    iterators: &mut Iterators,
) -> Result<Held, Error> {
    let codes = code::unpinned(loaded, pins);
    if codes.is_empty() {
        return Ok(Held::default());
    }
    let found = namespaces::sockets_on(&pins.algorithm.congestion_control(), iterators)?;
    let of_processes = match of_processes {
        Some(found) => found,
        None => of_processes.insert(migrate::of_processes(iterators)?),
    };
    // A socket that both have found is a process's.
    let found = found.iter().chain(of_processes.iter()).map(|holder| (holder.socket, *holder));
    Ok(summary(&codes, &found.collect::<BTreeMap<_, _>>().into_values().collect::<Vec<_>>()))
}

/// What [`look`] would find where no socket can be looked at.
pub(crate) fn unseen(pins: &Pins, loaded: &Loaded) -> Held {
    summary(&code::unpinned(loaded, pins), &[])
}

/// `codes`: what is loaded; `holders`: sockets, each once.
fn summary(codes: &[u32], holders: &[Holder]) -> Held {
    let of = |code: u32| holders.iter().filter(move |holder| holder.code == code);
    let mut by = BTreeMap::new();
    for holder in codes.iter().flat_map(|code| of(*code)) {
        let process = (holder.pid != 0).then(|| (holder.pid, text(&holder.command)));
        *by.entry((!holder.only_listens(), process, holder.state)).or_insert(0) += 1;
    }
    Held {
        copies: codes.len(),
        idle: codes
            .iter()
            .filter(|code| of(**code).count() > 0 && of(**code).all(Holder::only_listens))
            .count(),
        unexplained: codes.iter().filter(|code| of(**code).count() == 0).count(),
        by: by
            .into_iter()
            .map(|((runs, process, state), sockets)| HeldBy {
                state: TcpState::from_raw(state),
                only_listens: !runs,
                process,
                sockets,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::abi::padded;

    const ESTABLISHED: u8 = 1;
    const CLOSE: u8 = 7;
    const LISTEN: u8 = 10;

    fn holder(socket: u64, code: u32, state: u8, chosen: u8, pid: u32) -> Holder {
        Holder { socket, code, state, chosen, pid, command: padded("nginx"), ..Holder::default() }
    }

    #[test]
    fn code_that_only_listening_sockets_hold_is_idle_unless_their_application_chose_it() {
        for (holders, idle, unexplained) in [
            (vec![], 0, 1),
            (vec![holder(1, 7, LISTEN, 0, 5)], 1, 0),
            (vec![holder(1, 7, LISTEN, 1, 5)], 0, 0),
            (vec![holder(1, 7, LISTEN, 0, 5), holder(2, 7, ESTABLISHED, 0, 5)], 0, 0),
            (vec![holder(1, 8, LISTEN, 0, 5)], 0, 1),
        ] {
            let held = summary(&[7], &holders);
            assert_eq!((held.copies, held.idle, held.unexplained), (1, idle, unexplained), "{holders:?}");
            assert_eq!(held.may_run(), idle == 0);
        }
    }

    #[test]
    fn holders_are_counted_by_process_and_state() {
        let holders = [
            holder(1, 7, LISTEN, 0, 5),
            holder(2, 9, LISTEN, 0, 5),
            holder(3, 7, CLOSE, 0, 6),
            holder(4, 7, ESTABLISHED, 0, 0),
            holder(5, 8, ESTABLISHED, 0, 0),
        ];
        let held = summary(&[7, 9], &holders);
        let by: Vec<_> = held.by.iter().map(|one| (one.state, one.process.clone(), one.sockets)).collect();
        let nginx = |pid| Some((pid, "nginx".to_owned()));
        assert_eq!(
            by,
            [
                (TcpState::Listen, nginx(5), 2),
                (TcpState::Established, None, 1),
                (TcpState::Close, nginx(6), 1)
            ]
        );
        assert_eq!((held.copies, held.idle), (2, 1));
    }
}
