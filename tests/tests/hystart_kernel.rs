//! hystart as a congestion control of its own against the kernel's CUBIC with HyStart, over the same links with the
//! same seeds; and Peters et al. 2021's finding, which detector it is that leaves early over a satellite.

mod hystart;

use hystart::{Start, attach, geo, median, profile, slow_start};
use onramp_loader::Phase;
use onramp_tests::Attachments;

/// Links on which the exit is no matter of chance: rate in Mb/s, one way in microseconds, and the bit of the detector
/// that leaves. At 5 Mb/s two segments take more than the 2 ms that a train bears, so it is the delay.
const LINKS: [(u64, u64, u32); 3] = [(5, 30_000, 2), (20, 30_000, 1), (200, 10_000, 1)];

/// Window and detector of a kernel's exit, as its counters have it.
fn kernels_exit(start: &Start) -> (u32, u32) {
    let [train, delay, train_window, delay_window] = start.kernel;
    assert_eq!(train.max(delay), 1, "one exit: {start:?}");
    (train_window.max(delay_window) as u32, (train + 2 * delay) as u32)
}

/// The same of ours, whose record and threshold must agree; the kernel's own HyStart kept silent.
fn our_exit(start: &Start) -> (u32, u32) {
    assert_eq!(start.kernel, [0; 4], "the base's HyStart is silent");
    let flow = start.flow.as_ref().expect("a flow of ours");
    let Phase::Left(_, record) = flow.phase() else { panic!("{start:?}") };
    assert_eq!((Some(record.window), record.window), (start.ssthresh, record.window_after));
    (record.window, flow.export("detected").expect("an export"))
}

/// Both arms on these links, seeds from 1. Per link most exits of both are by the detector that the link is made for,
/// and the medians of the windows are within a quarter. No more than that: the two arms do not take the same time over an
/// ACK, which moves an exit by some ACKs and breaks a train now and then. hystart_witness.rs compares ACK by ACK.
fn match_arms(links: &[(u64, u64, u32)], seeds: u64) {
    let attachments = Attachments::lock();
    attach(&attachments, "hystart", &[]);
    for (rate, one_way, detector) in links.iter().copied() {
        let profile = profile(rate, one_way, 0);
        let arm = |control, exit: fn(&Start) -> (u32, u32)| -> Vec<(u32, u32)> {
            (1..=seeds).map(|seed| exit(&slow_start(&profile, seed, control, 60_000_000))).collect()
        };
        let (kernels, ours) = (arm("cubic", kernels_exit), arm("onramp_hystart", our_exit));
        println!("{rate} Mb/s, {} ms:\n  cubic {kernels:?}\n  ours  {ours:?}", one_way / 500);
        for exits in [&kernels, &ours] {
            let such = exits.iter().filter(|(_, by)| by & detector != 0).count();
            assert!(such * 2 > exits.len(), "most by {detector}: {exits:?}");
        }
        let windows =
            [kernels, ours].map(|exits| median(exits.into_iter().map(|(window, _)| window).collect()));
        println!("  medians {windows:?}");
        assert!(windows[0].abs_diff(windows[1]) * 4 <= windows[0], "{windows:?}");
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn it_leaves_where_the_kernels_hystart_leaves() {
    match_arms(&LINKS[..2], 3);
}

mod minutes {
    #[test]
    #[ignore = "in a guest: tests/guests.sh --minutes"]
    fn it_leaves_where_the_kernels_hystart_leaves_on_more_links() {
        super::match_arms(&super::LINKS, 20);
    }
}

/// Peters et al. 2021: "Packet-train only performs similarly to HyStart off", "delay only performs similarly to both". The window that
/// each reaches over the GEO link with 8 MB to send, three quarters of what fits the path.
#[test]
#[ignore = "in a guest: make test"]
fn over_a_satellite_it_is_the_delay_that_exits_early() {
    let attachments = Attachments::lock();
    let windows = ["none", "train", "delay", "both"].map(|detect| {
        attach(&attachments, "hystart", &[&format!("detect={detect}")]);
        let start = slow_start(&geo(), 1, "onramp_hystart", 8_000_000);
        onramp_loader::detach(onramp_loader::find("hystart").expect("hystart"), false).expect("detach");
        start.ssthresh.unwrap_or(start.info.snd_cwnd)
    });
    println!("none, train, delay, both: {windows:?}");
    let [none, train, delay, both] = windows;
    assert!(none > 4_000 && train * 5 > none * 4, "trains do not leave: {windows:?}");
    assert!(delay * 10 < none && both * 10 < none, "delays leave early: {windows:?}");
}
