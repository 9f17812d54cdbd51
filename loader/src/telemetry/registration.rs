//! One consumer's place among all: a slot, a ring in it, and a lease process.

use std::os::fd::AsFd;
use std::process;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use aya::maps::{MapData, RingBuf};
use libbpf_rs::{MapHandle, MapType};

use super::lease::{Lease, Unused, release, renew};
use super::shared::Shared;
use super::subscription::{Options, Subscription};
use crate::object::abi::shared::Consumer;
use crate::object::abi::{CONSUMER_MAX, padded};
use crate::object::open;
use crate::pins::{self, Lock, Pins, WaitWhile};
use crate::system::clock::monotonic_ns;
use crate::system::error::Error;
use crate::system::kernel;

/// A ring wakes its reader when this part of it is filled.
const WAKE_DIVISOR: u32 = 8;

pub(crate) struct Registration {
    shared: Shared,
    rings: MapData,
    slot: usize,
    id: u64,
    // Dropped after `drop`, which leaves it nothing to do.
    lease: Lease,
}

impl Registration {
    /// Takes a slot; the ring that goes into it is returned.
    pub fn new(options: &Options, wait: WaitWhile<'_>) -> Result<(Self, RingBuf<MapData>), Error> {
        check(&options.subscription)?;
        kernel::require_privilege("a consumer of telemetry")?;
        kernel::ensure_bpffs()?;
        let _lock = Lock::take_while(wait)?;
        let ring = make_ring(options.ring_bytes)?;
        // Their parameters and exports would get the wrong names.
        for algorithm in pins::pinned()? {
            if let Err(error @ Error::OtherBuild { .. }) = Pins::new(algorithm).attachment() {
                return Err(error);
            }
        }
        let shared = Shared::open_or_create()?;
        let result = Self::register(&shared, options, &ring);
        if result.is_err() {
            let _ = Unused::new().remove(&shared);
        }
        let registration = result?;
        let fd = ring.as_fd().try_clone_to_owned().map_err(Error::io("use", "a ring buffer"))?;
        Ok((registration, pins::ring(fd, &shared.rings())?))
    }

    fn register(shared: &Shared, options: &Options, ring: &MapHandle) -> Result<Self, Error> {
        let free = |slot: &Consumer| slot.id.load(Acquire) == 0;
        let slot = shared.consumers.iter().position(free).ok_or_else(|| {
            let others = shared.consumers.iter().map(|other| other.pid.load(Relaxed).to_string());
            Error::TooManyConsumers { most: CONSUMER_MAX, pids: others.collect::<Vec<_>>().join(", ") }
        })?;
        let id = monotonic_ns();
        let mine = &shared.consumers[slot];
        mine.lost.store(0, Relaxed);
        mine.expired_ns.store(0, Relaxed);
        mine.lease_ns.store(0, Relaxed);
        mine.pid.store(process::id(), Relaxed);
        mine.ring_bytes.store(options.ring_bytes, Relaxed);
        mine.wake_bytes.store(options.ring_bytes / WAKE_DIVISOR, Relaxed);
        for (to, from) in mine.name.iter().zip(padded::<16>(&options.name)) {
            to.store(from, Relaxed);
        }
        describe(mine, &options.subscription)?;
        let rings = pins::data(&shared.rings())?;
        pins::put_ring(&shared.rings(), slot as u32, ring.as_fd())?;
        // Last: what the kernel finds in a slot with an id is this consumer's.
        mine.id.store(id, Release);
        let lease = match Lease::start(shared, rings.fd().as_fd(), slot, id) {
            Ok(lease) => lease,
            Err(error) => {
                release(shared, rings.fd().as_fd(), slot, id);
                return Err(error);
            }
        };
        let registration = Self { shared: shared.clone(), rings, slot, id, lease };
        registration.subscribe(&options.subscription)?;
        Ok(registration)
    }

    /// Changes the subscription of this consumer.
    pub fn subscribe(&self, subscription: &Subscription) -> Result<(), Error> {
        describe(self.mine(), subscription)?;
        self.shared.wanted.fetch_and(!((0xff ^ subscription.level.bits()) << (8 * self.slot)), Relaxed);
        renew(&self.shared, self.slot);
        self.shared.announce();
        Ok(())
    }

    /// Has a process that may do what this one may now keep the slot, in place of the one that may do what this one could.
    pub fn keep_anew(&mut self) -> Result<(), Error> {
        let old = self.id;
        // The old lease process ends at this, and frees no slot that is another id's.
        self.id = monotonic_ns();
        self.mine().id.store(self.id, Release);
        match Lease::start(&self.shared, self.rings.fd().as_fd(), self.slot, self.id) {
            Ok(lease) => self.lease = lease,
            Err(error) => {
                self.id = old;
                self.mine().id.store(old, Release);
                return Err(error);
            }
        }
        Ok(())
    }

    /// This consumer's slot.
    pub fn mine(&self) -> &Consumer {
        &self.shared.consumers[self.slot]
    }

    /// Fails if the slot is not kept any more.
    pub fn check(&self) -> Result<(), Error> {
        if self.lease.alive() && self.mine().id.load(Acquire) == self.id {
            return Ok(());
        }
        Err(Error::LeaseLost)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        match Lock::try_take() {
            Ok(Some(_lock)) => {
                release(&self.shared, self.rings.fd().as_fd(), self.slot, self.id);
                let _ = Unused::new().remove(&self.shared);
            }
            // The lease process does it, and this one does not wait for the lock at its end.
            Ok(None) => {}
            Err(error) => tracing::debug!("{error}"),
        }
    }
}

/// Writes a subscription into a slot.
fn describe(slot: &Consumer, subscription: &Subscription) -> Result<(), Error> {
    let (prefix, mask) = check(subscription)?;
    slot.level.store(subscription.level as u32, Relaxed);
    slot.sampling.store(subscription.sampling, Relaxed);
    for (to, from) in slot.prefix.iter().zip(prefix).chain(slot.mask.iter().zip(mask)) {
        to.store(from, Relaxed);
    }
    slot.remote_port.store(subscription.filter.remote_port.unwrap_or(0), Relaxed);
    slot.local_port.store(subscription.filter.local_port.unwrap_or(0), Relaxed);
    Ok(())
}

/// The words of a subscription's filter, if the subscription is valid.
fn check(subscription: &Subscription) -> Result<([u64; 2], [u64; 2]), Error> {
    if subscription.sampling == 0 {
        return Err(Error::Subscription { what: "sampling 0: give 1 for all flows, N for one in N".into() });
    }
    subscription.filter.words().ok_or_else(|| {
        let (address, bits) =
            subscription.filter.remote.unwrap_or((std::net::Ipv4Addr::UNSPECIFIED.into(), 0));
        Error::Subscription {
            what: format!("the prefix {address}/{bits}: give at most 32 bits for IPv4, 128 for IPv6"),
        }
    })
}

fn make_ring(bytes: u32) -> Result<MapHandle, Error> {
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u32;
    if !bytes.is_power_of_two() || bytes < page {
        return Err(Error::Subscription {
            what: format!("a ring of {bytes} bytes: give a power of two from {page} bytes on"),
        });
    }
    let options = open::map_options(0);
    MapHandle::create(MapType::RingBuf, Some("onramp_ring"), 0, 0, bytes, &options)
        .map_err(open::failed("create", "a ring buffer"))
}
