//! Connections, and which is closed for a new one: no client keeps the others out, neither by saying nothing nor by asking
//! for something now and then.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use onramp_net::Prefix;
use tokio::sync::Notify;

/// Connections at once.
pub(super) const CONNECTIONS_MAX: usize = 256;
/// Of one address, or of one network of IPv6. Those of this host, where a web server may be in front, are not counted.
const OF_NETWORK_MAX: usize = 64;
/// What one host has of IPv6.
const NETWORK_BITS: u32 = 64;

/// What a connection is doing. A new one takes the place of the first of these that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// It has not asked for anything since its last answer.
    Waiting,
    /// Its request is not answered; the body may still be on its way.
    Asking,
    /// Its answer is not taken.
    Answering,
    /// It gets events as they come; there is a limit to such connections.
    Live,
}

struct Open {
    network: Option<Prefix>,
    doing: Doing,
    /// Number of the change to that.
    since: u64,
    evicted: Arc<Notify>,
}

#[derive(Default)]
struct All {
    open: BTreeMap<u64, Open>,
    changes: u64,
}

#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<All>>);

/// A connection's place, which it leaves with this.
pub(super) struct Place {
    all: Connections,
    id: u64,
    evicted: Arc<Notify>,
}

impl Connections {
    /// A place for a connection from there, or from this host. Where there is none, another connection is closed: of the
    /// same network if that has enough, else of all. `None`: they all get events.
    pub fn take(&self, address: Option<IpAddr>) -> Option<Place> {
        let network = address.and_then(network);
        let mut all = self.lock();
        let same = |open: &Open| open.network == network;
        if network.is_some() && all.open.values().filter(|open| same(open)).count() >= OF_NETWORK_MAX {
            all.evict(same)?;
        }
        if all.open.len() >= CONNECTIONS_MAX {
            all.evict(|_| true)?;
        }
        all.changes += 1;
        let (id, evicted) = (all.changes, Arc::new(Notify::new()));
        let open = Open { network, doing: Doing::Waiting, since: id, evicted: Arc::clone(&evicted) };
        all.open.insert(id, open);
        Some(Place { all: self.clone(), id, evicted })
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn does(&self, id: u64, doing: Doing) {
        let mut all = self.lock();
        all.changes += 1;
        let since = all.changes;
        if let Some(open) = all.open.get_mut(&id) {
            (open.doing, open.since) = (doing, since);
        }
    }
}

impl All {
    fn evict(&mut self, among: impl Fn(&Open) -> bool) -> Option<()> {
        let candidates = self.open.iter().filter(|(_, open)| open.doing != Doing::Live && among(open));
        let id = *candidates.min_by_key(|(_, open)| (open.doing, open.since))?.0;
        self.open.remove(&id)?.evicted.notify_one();
        Some(())
    }
}

/// What connections are counted by; `None`: they are not.
fn network(address: IpAddr) -> Option<Prefix> {
    let address = address.to_canonical();
    let whole: Prefix = address.into();
    let network = if address.is_ipv4() { whole } else { whole.shortened(NETWORK_BITS).network() };
    (!address.is_loopback()).then_some(network)
}

impl Place {
    /// Until another connection takes it.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// For as long as a request takes.
    pub fn asks(&self) -> Busy {
        self.all.does(self.id, Doing::Asking);
        Busy { all: self.all.clone(), id: self.id }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.lock().open.remove(&self.id);
    }
}

/// A request, until its answer is sent.
pub(super) struct Busy {
    all: Connections,
    id: u64,
}

impl Busy {
    /// The answer, which ends with this.
    pub fn answers(self, response: Response) -> Response {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let live = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        self.all.does(self.id, if live { Doing::Live } else { Doing::Answering });
        response.map(|body| Body::new(Answer { body, _busy: self }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.all.does(self.id, Doing::Waiting);
    }
}

struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Connections {
        fn from(&self, address: &str) -> Option<Place> {
            self.take(Some(address.parse().unwrap()))
        }
    }

    impl Place {
        fn is_there(&self) -> bool {
            self.all.lock().open.contains_key(&self.id)
        }
    }

    fn there(places: &[Place]) -> Vec<bool> {
        places.iter().map(Place::is_there).collect()
    }

    #[test]
    fn an_address_that_has_enough_closes_its_own_connections() {
        let all = Connections::default();
        let other = all.from("192.0.2.2").unwrap();
        let mut open: Vec<Place> = (0..OF_NETWORK_MAX).map(|_| all.from("192.0.2.1").unwrap()).collect();
        open.extend(all.from("::ffff:192.0.2.1"));
        assert_eq!((open[0].is_there(), open[1].is_there(), other.is_there()), (false, true, true));
        // One that has left makes room.
        open.pop();
        open.extend(all.from("192.0.2.1"));
        assert!(open[1].is_there());
        let far: Vec<Place> =
            (0..OF_NETWORK_MAX).map(|host| all.from(&format!("2001:db8::{host:x}")).unwrap()).collect();
        let next = [all.from("2001:db8::ffff").unwrap(), all.from("2001:db8:0:1::1").unwrap()];
        assert_eq!((far[0].is_there(), far[1].is_there(), there(&next)), (false, true, vec![true, true]));
        let near: Vec<_> = (0..100).filter_map(|_| all.from("127.0.0.1")).collect();
        assert!(near.iter().all(Place::is_there));
        drop((other, open, far, next, near));
        assert!(all.lock().open.is_empty());
    }

    #[test]
    fn the_one_that_waits_for_longest_goes_first_then_who_asks_then_who_does_not_read() {
        let all = Connections::default();
        let open: Vec<Place> = (0..CONNECTIONS_MAX).map(|_| all.take(None).unwrap()).collect();
        // The first has asked and is answered; all others but the second and the third are being answered, or get events.
        drop(open[0].asks());
        let asking = open[1].asks();
        let answer = |kind: &'static str| {
            move |place: &Place| {
                let mut response = Response::new(Body::from("x"));
                response.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
                place.asks().answers(response)
            }
        };
        let answers: Vec<Response> = open[3..10].iter().map(answer("application/json")).collect();
        let live: Vec<Response> = open[10..].iter().map(answer("text/event-stream")).collect();
        let mut newer = Vec::new();
        for gone in [2, 0, 1, 3, 4] {
            assert!(open[gone].is_there(), "{gone}");
            let new = all.take(None).unwrap();
            assert!(!open[gone].is_there(), "{gone}");
            let response = answer("text/event-stream")(&new);
            newer.push((new, response));
        }
        assert_eq!(there(&open).iter().filter(|there| **there).count(), CONNECTIONS_MAX - newer.len());
        drop((asking, answers, live));
    }

    #[test]
    fn a_reader_of_events_keeps_its_place() {
        let all = Connections::default();
        let open: Vec<Place> = (0..OF_NETWORK_MAX).map(|_| all.from("192.0.2.1").unwrap()).collect();
        let mut live: Vec<Response> = Vec::new();
        for place in &open {
            let mut response = Response::new(Body::empty());
            response.headers_mut().insert(header::CONTENT_TYPE, "text/event-stream".parse().unwrap());
            live.push(place.asks().answers(response));
        }
        assert!(all.from("192.0.2.1").is_none());
        live.pop();
        assert!(all.from("192.0.2.1").is_some(), "whose events have ended");
    }
}
