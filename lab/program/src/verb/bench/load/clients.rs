//! Short connections at a rate: each asks for some bytes, reads them and goes.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use nix::time::ClockId;

use super::latency::Latency;
use super::place::{Place, THREADS, connect};
use crate::consumer::Signals;

/// What nine of ten connections ask for, bytes: less than an initial window. Every tenth asks for more than one.
const SMALL: u32 = 5_000;
const LARGE: u32 = 100_000;
const LARGE_EVERY: u64 = 10;
/// In which each held connection has its turn once.
const HELD_EVERY: Duration = Duration::from_secs(10);
/// Until all threads are there.
const LEAD: Duration = Duration::from_millis(20);

/// Whether to go on, for all threads.
pub(super) struct Stop {
    asked: AtomicBool,
    signals: Signals,
}

impl Stop {
    pub fn new(signals: Signals) -> Self {
        Self { asked: AtomicBool::new(false), signals }
    }

    /// Fails once a signal has come.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.came() { Err(anyhow!("interrupted; nothing is left of the measurement")) } else { Ok(()) }
    }

    fn came(&self) -> bool {
        if self.signals.came() {
            self.asked.store(true, Ordering::Relaxed);
        }
        self.asked.load(Ordering::Relaxed)
    }
}

/// Connections that begin at equal distances.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    /// Each connection that it holds sends something once in ten seconds meanwhile.
    pub place: &'a Place,
    /// A second.
    pub rate: u32,
}

/// What became of them.
#[derive(Default)]
pub(super) struct Stretch {
    /// From the time at which a connection was to begin to its last byte, of those that had all.
    pub latency: Latency,
    /// Bytes read by these.
    pub bytes: u64,
    pub seconds: f64,
    /// Of this process: of all threads of both ends, with what the kernel does for them in their place. That of the whole
    /// machine is counted by ticks, which work that begins with a timer escapes.
    pub cpu_seconds: f64,
}

impl Load<'_> {
    /// For this time.
    pub fn run(self, time: Duration, stop: &Stop) -> anyhow::Result<Stretch> {
        self.run_while(|elapsed| elapsed < time, stop)
    }

    /// While something else is done, which begins with them.
    pub fn run_beside<T: Send>(
        self,
        stop: &Stop,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<(T, Stretch)> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let clients = scope.spawn(|| self.run_while(|_| !over.load(Ordering::Relaxed), stop));
            let done = work();
            over.store(true, Ordering::Relaxed);
            let stretch = clients.join().map_err(|_| anyhow!("a client has panicked"))?;
            Ok((done?, stretch?))
        })
    }

    fn run_while(self, goes_on: impl Fn(Duration) -> bool + Sync, stop: &Stop) -> anyhow::Result<Stretch> {
        let begin = Instant::now() + LEAD;
        let cpu = cpu_time()?;
        let (latency, bytes) = thread::scope(|scope| {
            let (stop, goes_on) = (&stop, &goes_on);
            let held = scope.spawn(move || self.turns(begin, |elapsed| goes_on(elapsed) && !stop.came()));
            let threads: Vec<_> = (0..THREADS)
                .map(|first| {
                    scope.spawn(move || self.client(first, begin, |elapsed| goes_on(elapsed) && !stop.came()))
                })
                .collect();
            let (mut latency, mut bytes) = (Latency::default(), 0);
            for thread in threads {
                let (of_thread, read) = thread.join().map_err(|_| anyhow!("a client has panicked"))??;
                latency.add(of_thread);
                bytes += read;
            }
            held.join().map_err(|_| anyhow!("a client has panicked"))??;
            Ok::<_, anyhow::Error>((latency, bytes))
        })?;
        stop.check()?;
        let cpu_seconds = (cpu_time()? - cpu).as_secs_f64();
        Ok(Stretch { latency, bytes, seconds: begin.elapsed().as_secs_f64(), cpu_seconds })
    }

    /// Every 32nd connection, from the `first` on. One that fails ends the measurement: nothing may be lost.
    fn client(
        self,
        first: u32,
        begin: Instant,
        goes_on: impl Fn(Duration) -> bool,
    ) -> anyhow::Result<(Latency, u64)> {
        self.place.client.enter()?;
        let mut latency = Latency::default();
        let (mut bytes, mut number) = (0, u64::from(first));
        loop {
            let planned = Duration::from_secs_f64(number as f64 / f64::from(self.rate));
            if !goes_on(planned) {
                return Ok((latency, bytes));
            }
            thread::sleep((begin + planned).saturating_duration_since(Instant::now()));
            bytes += u64::from(ask(self.place, number).map_err(|error| {
                error.context(format!("connection {number}, {:.1} s after the first", planned.as_secs_f64()))
            })?);
            latency.push((begin + planned).elapsed());
            number += u64::from(THREADS);
        }
    }

    /// The turns of held connections.
    fn turns(self, begin: Instant, goes_on: impl Fn(Duration) -> bool) -> anyhow::Result<()> {
        let held = self.place.held()?;
        for number in 0.. {
            let planned = HELD_EVERY.mul_f64(number as f64 / held as f64);
            if !goes_on(planned) {
                break;
            }
            thread::sleep((begin + planned).saturating_duration_since(Instant::now()));
            self.place.goes_on(number % held).map_err(|error| error.context("a held connection"))?;
        }
        Ok(())
    }
}

/// Processor time of this process since it began.
fn cpu_time() -> anyhow::Result<Duration> {
    Ok(ClockId::CLOCK_PROCESS_CPUTIME_ID.now()?.into())
}

/// One connection from beginning to end: how many bytes it read.
fn ask(place: &Place, number: u64) -> anyhow::Result<u32> {
    let bytes = if number.is_multiple_of(LARGE_EVERY) { LARGE } else { SMALL };
    let mut stream = connect(place.address)?;
    stream.write_all(&bytes.to_ne_bytes())?;
    stream.read_exact(&mut vec![0; bytes as usize])?;
    Ok(bytes)
}
