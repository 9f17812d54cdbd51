//! The shell of an algorithm in the kernel: loaded, filled, pinned, and then registered.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapHandle, MapType, Object};

use crate::object::abi::{Attachment, Base, Guard, ParameterSlot, bytes_of};
use crate::object::algorithms;
use crate::object::open::{self, Mode};
use crate::pins::profiles::{self, CHOICES, PATH_MAPS, STARTS};
use crate::pins::tables;
use crate::pins::{self, FLOW_TELEMETRY, GUARD, LINK, MAPS, OPERATIONS, Pins, TELEMETRY_MAPS};
use crate::system::error::Error;
use crate::system::kernel::Kernel;
use crate::telemetry;

/// `BPF_STRUCT_OPS_STATE_INUSE`: registered by the map itself.
const IN_USE: u32 = 1;

/// What its maps are filled with.
pub(crate) struct Contents {
    pub attachment: Attachment,
    /// From the first parameter set on.
    pub slots: Vec<ParameterSlot>,
    /// `onramp apply` attaches it.
    pub applied: bool,
    /// Its guard, if it has one.
    pub guard: Option<Guard>,
}

/// A shell whose maps are filled and pinned.
pub(crate) struct Shell<'a> {
    object: Object,
    pins: &'a Pins,
}

impl<'a> Shell<'a> {
    /// Loads the shell of an algorithm with the maps that all algorithms share, which are pinned in `telemetry`, and pins
    /// it; registers nothing.
    pub fn load(
        contents: &Contents,
        kernel: &Kernel,
        telemetry: &Path,
        pins: &'a Pins,
    ) -> Result<Self, Error> {
        let name = pins.algorithm.name();
        let failed = |action| open::failed(action, name);
        let attachment = &contents.attachment;
        let base = Base::from_number(attachment.base);
        let mode = Mode {
            observing: attachment.observes(),
            guarding: contents.guard.is_some(),
            after_exit: attachment.after_exit(),
            start: attachment.start(),
        };
        let mut shared: Vec<_> = TELEMETRY_MAPS.map(|name| (name, telemetry.join(name))).into();
        shared.extend([CHOICES, STARTS].map(|name| (name, profiles::path(name))));
        if mode.start.remembers() {
            profiles::ensure_paths()?;
            shared.extend(PATH_MAPS.map(|(name, ..)| (name, profiles::path(name))));
        }
        let mut object = open::sharing_shell(pins.algorithm, base, mode, kernel, &shared)?;
        pins::make(&pins.directory)?;
        for mut map in object.maps_mut() {
            let map_name = open::map_name(map.name());
            match map_name.as_str() {
                "params" => {
                    for (index, slot) in (0u32..).zip(&contents.slots) {
                        map.update(&index.to_ne_bytes(), bytes_of(slot), MapFlags::ANY)
                            .map_err(failed("fill"))?;
                    }
                }
                "attachment" => {
                    map.update(&[0; 4], bytes_of(&contents.attachment), MapFlags::ANY)
                        .map_err(failed("fill"))?;
                }
                GUARD => {
                    if let Some(guard) = &contents.guard {
                        map.update(&[0; 4], bytes_of(guard), MapFlags::ANY).map_err(failed("fill"))?;
                        map.pin(pins.path(GUARD)).map_err(failed("pin"))?;
                    }
                }
                _ => {}
            }
            if MAPS.contains(&map_name.as_str()) || map_name == FLOW_TELEMETRY {
                map.pin(pins.path(&map_name)).map_err(failed("pin"))?;
            } else if map.map_type() == MapType::StructOps {
                map.pin(pins.path(OPERATIONS)).map_err(failed("pin"))?;
            }
        }
        tables::pin(pins)?;
        algorithms::pin_object(pins.algorithm, &pins.directory)?;
        if contents.applied {
            pins.mark_applied()?;
        }
        Ok(Self { object, pins })
    }

    /// Registers its control, so that it stays for as long as the pins do.
    pub fn register(&mut self, kernel: &Kernel) -> Result<(), Error> {
        let failed = |action| open::failed(action, self.pins.algorithm.name());
        for mut map in self.object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let mut link: Link = map.attach_struct_ops().map_err(failed("register"))?;
            if kernel.has_link() {
                link.pin(self.pins.path(LINK)).map_err(failed("pin"))?;
            } else {
                // The registration lives in the map then and outlives this process; dropping would undo it.
                link.disconnect();
            }
        }
        Ok(())
    }

    /// Has a pinned link register this shell instead of the one that it registers, of the same name. At no moment is
    /// there none.
    pub fn take_over(&mut self, link: &Path) -> Result<(), Error> {
        let failed = |action| open::failed(action, self.pins.algorithm.name());
        for mut map in self.object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            // libbpf writes the kernel's form of the struct only on its way to a link of its own, which cannot be had:
            // the name is taken.
            match map.attach_struct_ops() {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("prepare")(error)),
                // What had the name has ended meanwhile; this ends with the link.
                Ok(_) => return Err(self.pins.interrupted()),
            }
            put(link, map.as_fd()).map_err(failed("replace"))?;
        }
        Ok(())
    }
}

/// Has a pinned link register the operations of other pins, which it or another link has registered before.
pub(crate) fn restore(link: &Path, pins: &Pins) -> Result<(), Error> {
    let map = MapHandle::from_pinned_path(pins.path(OPERATIONS));
    map.and_then(|map| put(link, map.as_fd())).map_err(open::failed("restore", pins.algorithm.name()))
}

fn put(link: &Path, operations: BorrowedFd<'_>) -> libbpf_rs::Result<()> {
    let link = Link::open(link)?;
    // SAFETY: one system call on two descriptors that are open; null: no options.
    let answer = unsafe {
        libbpf_sys::bpf_link_update(link.as_fd().as_raw_fd(), operations.as_raw_fd(), std::ptr::null())
    };
    if answer < 0 { Err(libbpf_rs::Error::from_raw_os_error(-answer)) } else { Ok(()) }
}

/// Whether the operations of these pins are what is registered, by the link next to them or by themselves.
pub(crate) fn is_registered(pins: &Pins) -> Result<bool, Error> {
    let failed = open::failed("look at", pins.algorithm.name());
    let (operations, link) = (pins.path(OPERATIONS), pins.path(LINK));
    if !pins.has(OPERATIONS)? {
        return Ok(false);
    }
    let map = MapHandle::from_pinned_path(&operations).map_err(&failed)?;
    if !pins.has(LINK)? {
        // A counter of 32 bits, then its state (include/linux/bpf.h).
        let value = map.lookup(&[0; 4], MapFlags::ANY).map_err(&failed)?.unwrap_or_default();
        return Ok(value.get(4..8) == Some(&IN_USE.to_ne_bytes()));
    }
    let info = Link::open(&link).and_then(|link| link.info()).map_err(&failed)?;
    let map_id = map.info().map_err(&failed)?.info.id;
    Ok(matches!(info.info, LinkTypeInfo::StructOps(struct_ops) if struct_ops.map_id == map_id))
}

/// Ends the registration of operations that are registered by themselves.
pub(crate) fn unregister(pins: &Pins) -> Result<(), Error> {
    let map = MapHandle::from_pinned_path(pins.path(OPERATIONS));
    map.and_then(|map| map.delete(&[0; 4]))
        .map_err(open::failed("unregister", &pins.algorithm.congestion_control()))
}

/// Leaves of two sets of pins the one that is registered, in its place.
pub(crate) fn settle(pins: &Pins) -> Result<(), Error> {
    let other = Pins::other_of(pins.algorithm);
    if other.exist()? {
        if is_registered(&other)? && !is_registered(pins)? {
            pins.exchange(&other)?;
        }
        other.remove()?;
    }
    telemetry::clear_new_maps()
}
