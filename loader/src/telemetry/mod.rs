//! Telemetry: what happens to flows, event by event, for any number of consumers at once.
//!
//! A [`Stream`] is one consumer. It has a ring buffer of its own and subscribes to a level ([`Level`]), of how
//! many flows, and of which ([`Filter`]); consumers do not notice each other. The maps are shared by all algorithms, so
//! a stream outlives attaching and detaching. `docs/telemetry.md` has the events and what they cost.
//!
//! ```no_run
//! use onramp_loader::telemetry::{Item, Level, Options, Stream, What};
//!
//! # async fn example() -> Result<(), onramp_loader::Error> {
//! let mut stream = Stream::open(&Options::new("example", Level::Exit))?;
//! loop {
//!     match stream.next().await? {
//!         Item::Event(event) => {
//!             if let What::Exit(exit) = event.what {
//!                 println!("flow {:x} exited slow start by {}", event.flow, exit.reason.name());
//!             }
//!         }
//!         Item::Lost(lost) => eprintln!("{} events lost", lost.events),
//!     }
//! }
//! # }
//! ```

mod consumers;
mod decode;
mod event;
mod lease;
mod new_maps;
mod registration;
mod shared;
mod stream;
mod subscription;

pub use crate::object::abi::CONSUMER_MAX;
pub use crate::object::level::Level;
pub use consumers::Consumer;
pub(crate) use consumers::{consumers, listeners};
pub use event::{EndEvent, Event, ExitEvent, FlowEvent, Item, Lost, RoundEvent, StateEvent, What};
pub(crate) use new_maps::{NewMaps, clear_new_maps};
pub use onramp_algorithm::{
    AckPayload, CongestionState, EndPayload, EventKind, LossPayload, RestartPayload, StatePayload,
    UndoPayload,
};
pub(crate) use shared::{Shared, tidy};
pub use stream::Stream;
pub use subscription::{Filter, Options, Subscription};
