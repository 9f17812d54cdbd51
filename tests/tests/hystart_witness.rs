//! hystart against the kernel's own HyStart on the same flow: CUBIC decides, the header is asked about the very same
//! ACKs, and both are compared after each of them (`hystart/witness.bpf.c`).

mod hystart;

use std::thread;
use std::time::{Duration, Instant};

use hystart::kernels_counters;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use onramp_tests::Attachments;
use onramp_tests::sender::Sender;
use onramp_tests::wire::{Data, Fate, Wire};

/// A number of the witness, by its place in `struct seen`.
#[derive(Clone, Copy)]
enum Seen {
    Acks,
    Both,
    OnlyOurs,
    OnlyKernels,
    StateDiffers,
    Train,
    Delay,
    TrainWindows,
    DelayWindows,
    Over,
    Interrupted,
}

/// The control `onramp_witness`, registered as long as this lives.
struct Witness {
    object: Object,
    _link: Link,
    _attachments: Attachments,
}

impl Witness {
    /// `low_window_segments` is the header's; the kernel's is 16.
    fn register(low_window_segments: u64) -> Self {
        let attachments = Attachments::lock();
        let mut open = ObjectBuilder::default()
            .open_memory(include_bytes!(concat!(env!("OUT_DIR"), "/witness.bpf.o")))
            .expect("the object opens");
        for mut map in open.maps_mut().filter(|map| map.name() == ".rodata.params") {
            // The second parameter of the header.
            map.initial_value_mut().expect("a value")[8..16]
                .copy_from_slice(&low_window_segments.to_ne_bytes());
        }
        let mut object = open.load().expect("the object loads");
        let mut operations = object.maps_mut().find(|map| map.name() == "witness").expect("operations");
        let link = operations.attach_struct_ops().expect("the control registers");
        Self { object, _link: link, _attachments: attachments }
    }

    fn read(&self, seen: Seen) -> u64 {
        let map = self.object.maps().find(|map| map.name() == "seen").expect("a map");
        let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).expect("lookup").expect("a value");
        let at = seen as usize * 8;
        u64::from_ne_bytes(value[at..at + 8].try_into().expect("eight bytes"))
    }
}

/// A path that the wire's fates stand for: a queue without limit, a rate, a delay.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    one_way: Duration,
    /// Bits per second.
    rate: u64,
    /// Every packet waits up to this longer; none overtakes another.
    jitter: Duration,
    /// Whether the sender paces.
    paced: bool,
    seed: u64,
}

impl Bottleneck {
    /// One of many, by number.
    fn numbered(number: u64) -> Self {
        let of = |values: [u64; 4], stride: u64| values[(number / stride % 4) as usize];
        Self {
            one_way: Duration::from_millis(of([5, 12, 30, 60], 1)),
            rate: of([5, 20, 60, 1_000], 4) * 1_000_000,
            jitter: Duration::from_millis(of([0, 2, 10, 25], 2)),
            paced: number % 3 == 2,
            seed: number,
        }
    }

    fn lay(self) -> Wire {
        let serialization = Duration::from_nanos(1_500 * 8 * 1_000_000_000 / self.rate);
        let mut free = Instant::now();
        let mut random = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Wire::lay(self.one_way, move |_: Data| {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let jitter = Duration::from_micros(random % (self.jitter.as_micros() as u64 + 1));
            let now = Instant::now();
            free = (free + serialization).max(now + jitter);
            Fate::HoldBack(free - now)
        })
    }
}

/// Sends until slow start is over, or ten seconds. Returns the kernel's counters of this flow.
fn start_up(witness: &Witness, bottleneck: Bottleneck) -> [u64; 4] {
    let before = witness.read(Seen::Over);
    let mut sender = Sender::connect(bottleneck.lay(), "onramp_witness");
    if bottleneck.paced {
        sender.pace(u64::MAX - 1);
    }
    sender.stream.set_nonblocking(true).expect("nonblocking");
    let deadline = Instant::now() + Duration::from_secs(10);
    let data = vec![0; 1 << 18];
    while witness.read(Seen::Over) == before && Instant::now() < deadline {
        let _ = std::io::Write::write(&mut sender.stream, &data);
        thread::sleep(Duration::from_millis(2));
    }
    kernels_counters(&sender.wire.near)
}

/// What the header decided is what the kernel decided, on every ACK, and after every ACK both remember the same.
fn agree(paths: std::ops::Range<u64>) {
    let witness = Witness::register(16);
    let ours = [Seen::Train, Seen::Delay, Seen::TrainWindows, Seen::DelayWindows];
    let unlike = [Seen::OnlyOurs, Seen::OnlyKernels, Seen::StateDiffers];
    let (mut whole, mut detections) = (0, [0; 2]);
    for number in paths.clone() {
        let bottleneck = Bottleneck::numbered(number);
        let before = ours.map(|seen| witness.read(seen));
        let interrupted = witness.read(Seen::Interrupted);
        let kernels = start_up(&witness, bottleneck);
        let mut found = ours.map(|seen| witness.read(seen));
        found.iter_mut().zip(before).for_each(|(after, before)| *after -= before);
        println!("{bottleneck:?}: {found:?}, kernel {kernels:?}");
        let unlike = unlike.map(|seen| witness.read(seen));
        assert_eq!(unlike, [0, 0, 0], "exits of ours alone, of the kernel's alone, ACKs with other memories");
        // A loss ends the comparison, but not the kernel's HyStart: a timeout lets it begin anew.
        if witness.read(Seen::Interrupted) == interrupted {
            assert_eq!(found, kernels, "the kernel's own counters");
            whole += 1;
            detections = [detections[0] + kernels[0], detections[1] + kernels[1]];
        }
    }
    println!(
        "{} ACKs, {} exits, {whole} flows without loss",
        witness.read(Seen::Acks),
        witness.read(Seen::Both)
    );
    assert!(whole * 10 > (paths.end - paths.start) * 8, "most flows lose nothing: {whole}");
    assert!(detections.iter().all(|count| *count >= 3), "both detectors were at work: {detections:?}");
}

#[test]
#[ignore = "in a guest: make test"]
fn the_header_leaves_on_the_same_ack_as_the_kernel() {
    agree(0..24);
}

mod minutes {
    #[test]
    #[ignore = "in a guest: tests/guests.sh --minutes"]
    fn the_header_leaves_on_the_same_ack_as_the_kernel_on_many_paths() {
        super::agree(100..260);
    }
}

/// The comparison can fail: with another low window the header remembers other things than the kernel.
#[test]
#[ignore = "in a guest: make test"]
fn the_witness_notices_another_parameter() {
    let witness = Witness::register(40);
    start_up(&witness, Bottleneck::numbered(5));
    assert!(witness.read(Seen::StateDiffers) > 0);
}
