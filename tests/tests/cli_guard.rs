//! `onramp attach --guard` and `onramp status --guard`: who stays on the base, what is counted, and what a guard that trips
//! does.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{SndBuf, TcpCongestion};
use onramp_loader::{ExitReason, Flow, Phase};
use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, Names, host_state, inside, json, onramp};
use onramp_tests::pinned::pin;
use onramp_tests::sender::INITIAL_WINDOW_BYTES;
use onramp_tests::traffic::{eventually, namespace};
use onramp_tests::wire::{Data, FAR, Fate, Wire};
use serde_json::Value;

/// Where a thread reads what connections send, and counts those that have ended.
struct Sink {
    address: SocketAddr,
    ended: Receiver<()>,
}

impl Sink {
    fn open(place: &Namespace, address: Ipv4Addr) -> Self {
        let listener = place.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), end) = (stream, end.clone()) else { return };
                thread::spawn(move || {
                    let mut buffer = vec![0; 1 << 16];
                    while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
                    drop(stream);
                    let _ = end.send(());
                });
            }
        });
        Self { address, ended }
    }

    fn connect(&self, from: &Namespace) -> TcpStream {
        let address = self.address;
        from.run(move || TcpStream::connect(address).unwrap()).unwrap()
    }

    /// Connections one after the other, each of which sends so many bytes and ends.
    fn take(&self, from: &Namespace, connections: usize, bytes: usize) {
        let bytes = vec![0; bytes];
        for _ in 0..connections {
            let mut stream = self.connect(from);
            stream.write_all(&bytes).unwrap();
            drop(stream);
            self.ended.recv().unwrap();
        }
    }
}

/// The flow of an open connection.
fn flow(place: &Namespace, stream: &TcpStream) -> Flow {
    let local = stream.local_addr().unwrap();
    let listed = place.run(|| onramp_loader::flows(|socket| socket.local == local)).unwrap().unwrap();
    listed.into_iter().next().expect("the flow is listed")
}

/// Sends, and waits until all is acknowledged.
fn deliver(place: &Namespace, stream: &mut TcpStream, bytes: usize) -> Flow {
    let acknowledged = |flow: &Flow| flow.info.bytes_acked;
    let wanted = acknowledged(&flow(place, stream)) + bytes as u64;
    stream.write_all(&vec![0; bytes]).unwrap();
    assert!(eventually(|| acknowledged(&flow(place, stream)) >= wanted));
    flow(place, stream)
}

/// What `status --guard` says of the only guard.
fn guard() -> Value {
    let report = json("status --guard");
    assert_eq!(report["guarded"].as_array().unwrap().len(), 1, "{report}");
    report["guarded"][0].clone()
}

/// Flows of the treated and of the control.
fn counted(guard: &Value) -> (u64, u64) {
    let flows = |arm: &str| guard[arm]["flows"].as_u64().unwrap();
    (flows("treated"), flows("control"))
}

/// Half of the flows are the control, but for six standard deviations.
fn assert_halves((treated, control): (u64, u64)) {
    let (all, distance) = ((treated + control) as f64, treated.abs_diff(control) as f64);
    assert!(distance / 2.0 < 6.0 * (all / 4.0).sqrt(), "{treated} treated, {control} of the control");
}

/// Window at which `fixed` leaves below, bytes and segments.
const EXIT_WINDOW: usize = 30_000;
const EXIT_SEGMENTS: u32 = EXIT_WINDOW as u32 / 1_448;

/// The window has grown past where the algorithm leaves, and still grows by slow start.
fn assert_the_base_alone(flow: &Flow) {
    assert!(flow.info.snd_cwnd > 2 * EXIT_SEGMENTS, "{:?}", flow.info);
    assert_eq!(flow.info.snd_ssthresh, None, "{:?}", flow.info);
}

#[test]
#[ignore = "in a guest: make test"]
fn harm_trips_the_guard_and_the_base_runs_alone_from_then_on() {
    let _attachments = Attachments::lock();
    // A round-trip time of 100 ms: of what a transfer takes, its rounds are the most.
    let wire = Wire::lay(Duration::from_millis(50), |_| Fate::Deliver);
    wire.sysctl("net.ipv4.tcp_slow_start_after_idle", "0");
    let before = host_state(&[&wire.near]);
    let sink = Sink::open(&wire.far, FAR);
    // Reno has no HyStart: on this wire nothing but the algorithm ends slow start.
    let attach = format!(
        "attach fixed --base reno --default --set exit_window_bytes={EXIT_WINDOW} --guard goodput=-10% --control-share 50%"
    );
    let said = inside(&wire.near, &attach).ok();
    assert!(said.names(&["goodput=-10%", "50%"]), "{said}");

    // Of connections that have sent more than an initial window, who has state is treated; the others are the control, and run
    // the base alone.
    let mut open: Vec<TcpStream> = (0..24).map(|_| sink.connect(&wire.near)).collect();
    for stream in &mut open {
        assert!(deliver(&wire.near, stream, INITIAL_WINDOW_BYTES).header.is_none());
        deliver(&wire.near, stream, 1);
    }
    let is_treated = |stream: &TcpStream| flow(&wire.near, stream).header.is_some();
    let treated = open.iter().position(is_treated).unwrap();
    let mut established = open.remove(treated);
    let control = open.iter().position(|stream| !is_treated(stream)).unwrap();
    assert_the_base_alone(&deliver(&wire.near, &mut open[control], 300_000));
    let treated = open.iter().position(is_treated).unwrap();
    let left = deliver(&wire.near, &mut open[treated], 300_000);
    assert!(matches!(left.phase(), Phase::Left(ExitReason::Algorithm, _)), "{:?}", left.phase());
    deliver(&wire.near, &mut established, 5_000);
    let phase = flow(&wire.near, &established).phase();
    assert!(matches!(phase, Phase::SlowStart), "{phase:?}");

    let said = onramp("status --guard").ok();
    assert!(said.names(&["goodput", "0 of 100"]), "{said}");
    let tripped = || !guard()["tripped"].is_null();
    for _ in 0..40 {
        if tripped() {
            break;
        }
        sink.take(&wire.near, 10, 300_000);
    }
    assert!(tripped(), "{}", guard());
    let then = guard();
    println!("{then}");
    assert_eq!(then["tripped"]["metric"], "goodput");
    let (of_treated, of_control) = counted(&then);
    assert!(of_treated >= 100 && of_control >= 100, "{then}");
    assert_halves((of_treated, of_control));
    let goodput = &then["comparisons"][1];
    assert!(goodput["difference_pct"].as_f64().unwrap() < -10.0, "{goodput}");
    assert!(goodput["verdict"].as_str().unwrap().starts_with("tripped"), "{goodput}");
    let said = onramp("status --guard").ok();
    println!("{said}");
    assert!(said.contains("onramp detach fixed"), "{said}");
    assert!(onramp("status").ok().contains("onramp detach fixed"));
    assert_eq!(json("status")["algorithms"][0]["guard"]["tripped"]["metric"], "goodput");

    let base_alone_in_all = || {
        for _ in 0..8 {
            let mut stream = sink.connect(&wire.near);
            let flow = deliver(&wire.near, &mut stream, 300_000);
            assert!(flow.header.is_none());
            assert_the_base_alone(&flow);
        }
    };
    assert_the_base_alone(&deliver(&wire.near, &mut established, 300_000));
    base_alone_in_all();
    // Nothing else than attaching it anew lifts that, and nothing is counted meanwhile.
    assert_eq!(json("confirm fixed")["confirmed"], false);
    base_alone_in_all();
    assert_eq!(counted(&guard()), (of_treated, of_control));
    onramp("upgrade fixed").ok();
    base_alone_in_all();
    assert_eq!(counted(&guard()), (of_treated, of_control));
    assert_eq!(guard()["tripped"]["metric"], "goodput");

    let undo = json("detach fixed")["detached"][0]["undo"].as_str().unwrap().to_owned();
    assert!(undo.contains("--guard goodput=-10% --control-share 50%"), "{undo}");
    drop((open, established));
    assert_eq!(host_state(&[&wire.near]), before);
    // Attached anew, it begins anew.
    inside(&wire.near, undo.trim_start_matches("onramp ")).ok();
    assert!(!tripped() && counted(&guard()) == (0, 0));
}

/// A policer: 25 packets, and one more each millisecond. Who sends beyond that is not heard for 300 ms.
fn policer() -> impl FnMut(Data) -> Fate + Send + 'static {
    let (mut tokens, mut last, mut silent) = (25.0f64, Instant::now(), None::<Instant>);
    move |_| {
        let now = Instant::now();
        tokens = (tokens + now.duration_since(last).as_secs_f64() * 1e3).min(25.0);
        last = now;
        if tokens < 1.0 {
            silent = Some(now + Duration::from_millis(300));
        }
        if silent.is_some_and(|until| now < until) {
            return Fate::Drop;
        }
        tokens -= 1.0;
        Fate::Deliver
    }
}

/// Flows that end before they count in the other metrics, from a path that is remembered to be fast.
#[test]
#[ignore = "in a guest: make test"]
fn a_start_that_harms_the_first_bytes_trips_the_guard_and_one_that_does_not_does_not() {
    let _attachments = Attachments::lock();
    for harms in [true, false] {
        let delay = Duration::from_millis(10);
        let wire = if harms { Wire::lay(delay, policer()) } else { Wire::lay(delay, |_| Fate::Deliver) };
        let sink = Sink::open(&wire.far, FAR);
        let margins = "retransmit_ratio=2%,goodput=-10%,first_64kb=10%";
        inside(
            &wire.near,
            &format!("attach plain --base cubic --start resume --guard {margins} --control-share 50%"),
        )
        .ok();
        onramp(&format!("select add --replace --to {FAR} --use plain --resume 100mbit,20ms")).ok();
        let first = || guard()["comparisons"][2].clone();
        let tripped = || !guard()["tripped"].is_null();
        for _ in 0..if harms { 40 } else { 25 } {
            if tripped() {
                break;
            }
            sink.take(&wire.near, 10, 70_000);
        }
        let then = guard();
        println!("{then}");
        assert_eq!(tripped(), harms, "{then}");
        if harms {
            assert_eq!(then["tripped"]["metric"], "first_64kb", "{then}");
        }
        assert_eq!(counted(&then), (0, 0), "{then}");
        let seen = |arm: &str| first()[arm].as_u64().unwrap();
        assert_halves((seen("treated_flows"), seen("control_flows")));
        let difference = first()["difference_pct"].as_f64().unwrap();
        assert_eq!(difference > 10.0, harms, "{then}");
        for arm in ["treated", "control"] {
            assert!(then[arm]["first_64kb_us"].as_f64().unwrap() >= 20_000.0, "{then}");
        }
        onramp("select del --all").ok();
        onramp("detach plain").ok();
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn the_control_runs_bbr_where_that_was_the_default_and_a_named_base_otherwise() {
    let _attachments = Attachments::lock();
    // After a loss CUBIC has an ssthresh, and BBR has none.
    let lose = Arc::new(AtomicBool::new(false));
    let losing = Arc::clone(&lose);
    let wire = Wire::lay(Duration::from_millis(25), move |_| {
        if losing.swap(false, Ordering::Relaxed) { Fate::Drop } else { Fate::Deliver }
    });
    wire.near.sysctl_set(DEFAULT, "bbr").unwrap();
    let before = host_state(&[&wire.near]);
    let sink = Sink::open(&wire.far, FAR);
    for (named, base, keeps_its_window) in [("", "bbr", true), ("--base cubic ", "cubic", false)] {
        let attach = format!("--json attach plain {named}--default --guard goodput=-90% --control-share 50%");
        let attached: Value = serde_json::from_str(&inside(&wire.near, &attach).ok()).unwrap();
        assert_eq!((&attached["base"], &attached["default_before"]), (&base.into(), &"bbr".into()));
        assert_eq!(attached["warning"].is_null(), keeps_its_window, "{attached}");
        let mut control = (0..24)
            .map(|_| sink.connect(&wire.near))
            .find_map(|mut stream| {
                deliver(&wire.near, &mut stream, 100_000).header.is_none().then_some(stream)
            })
            .expect("half of 24 connections");
        lose.store(true, Ordering::Relaxed);
        let flow = deliver(&wire.near, &mut control, 100_000);
        assert!(flow.info.retrans_total > 0, "{:?}", flow.info);
        assert_eq!(flow.info.snd_ssthresh.is_none(), keeps_its_window, "{base}: {:?}", flow.info);
        drop(control);
        onramp("detach plain").ok();
        assert_eq!(host_state(&[&wire.near]), before);
    }
}

#[test]
#[ignore = "in a guest: make test"]
fn what_does_no_harm_goes_on_and_every_large_flow_is_counted_once() {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    let sink = Sink::open(&place, Ipv4Addr::LOCALHOST);
    // What plain does is what its base does.
    let margins = "retransmit_ratio=20%,goodput=-50%,first_64kb=100%";
    inside(&place, &format!("attach plain --base reno --default --guard {margins} --control-share 50%")).ok();
    sink.take(&place, 260, 110_000);
    let all = |guard: &Value| {
        let (treated, control) = counted(guard);
        treated + control
    };
    assert!(eventually(|| all(&guard()) == 260), "{}", guard());
    // Too small to count; and one that was taken over when it had sent more than an initial window.
    sink.take(&place, 20, 60_000);
    // Of these only the time to the first 64 kB is counted.
    sink.take(&place, 20, 90_000);
    let mut late = sink.connect(&place);
    setsockopt(&late, TcpCongestion, &"reno".into()).unwrap();
    // What does not lie in its buffer has been sent.
    setsockopt(&late, SndBuf, &(1 << 16)).unwrap();
    late.write_all(&vec![0; 2_000_000]).unwrap();
    setsockopt(&late, TcpCongestion, &"onramp_plain".into()).unwrap();
    late.write_all(&vec![0; 110_000]).unwrap();
    drop(late);
    sink.ended.recv().unwrap();
    let then = guard();
    println!("{then}");
    assert_eq!(all(&then), 260, "{then}");
    assert_halves(counted(&then));
    assert!(then["tripped"].is_null(), "{then}");
    let first = &then["comparisons"][2];
    assert_eq!(
        first["treated_flows"].as_u64().unwrap() + first["control_flows"].as_u64().unwrap(),
        280,
        "{then}"
    );
    for arm in ["treated", "control"] {
        assert!(then[arm]["first_64kb_us"].as_f64().unwrap() > 0.0, "{then}");
        assert!(then[arm]["goodput_bps"].as_f64().unwrap() > 0.0, "{then}");
        assert_eq!(then[arm]["retransmit_ratio_pct"], 0.0, "{then}");
    }
    assert_eq!(then["comparisons"][0]["verdict"], "no difference shown", "{then}");
    assert_eq!(then["comparisons"][0]["difference_pct"], 0.0, "{then}");
    // The interval of the ratio is that of rounding, and of the goodput one that has a width.
    let interval = then["comparisons"][1]["interval_pct"].as_array().unwrap();
    assert!(interval[0].as_f64() < interval[1].as_f64(), "{then}");
    let row = &json("status")["algorithms"][0];
    assert_eq!(row["guard"]["comparisons"][0]["margin_pct"].as_f64().unwrap().round(), 20.0, "{row}");

    // Other code counts from the beginning, by the same margins.
    onramp("upgrade plain").ok();
    assert_eq!(counted(&guard()), (0, 0));
    assert_eq!(guard()["control_share_pct"], 50.0);
    sink.take(&place, 4, 110_000);
    assert!(eventually(|| all(&guard()) == 4), "{}", guard());
    onramp("detach plain").ok();
    assert_eq!(host_state(&[&place]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn what_cannot_be_guarded_is_refused_and_what_would_be_is_reported() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    let error = onramp("attach search --observe --guard goodput=-10%").refused(2);
    assert!(error.contains("observe"), "{error}");
    for (arguments, said) in [
        ("attach search --guard goodput=10%", "goodput=10% is not allowed: give -1% to -90%"),
        ("attach search --guard delay=1%", "is not a margin"),
        ("attach search --guard goodput=-10% --control-share 60%", "give 1% to 50%"),
        ("attach search --control-share 20%", "--guard"),
        ("run search --guard goodput=-10% -- true", "--guard"),
    ] {
        let ran = onramp(arguments);
        assert_eq!(ran.code, Some(2), "{arguments}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:?}");
    }
    let dry = onramp("attach search --guard goodput=-10% --dry-run").ok();
    assert!(dry.names(&["goodput=-10%", "by 10%"]), "{dry}");
    assert_eq!(host_state(&[]), before);

    onramp("status --guard").ok();
    assert_eq!(json("status --guard")["guarded"], serde_json::json!([]));
    onramp("attach search").ok();
    assert_eq!(json("status --guard")["guarded"], serde_json::json!([]));
    assert!(json("status")["algorithms"][0].get("guard").is_none());
    onramp("detach search").ok();
    let few = cli::as_nobody("").args(["status", "--guard"]).current_dir("/").output().unwrap();
    assert!(cli::Ran::from(few).refused(4).contains("status"));
}

#[test]
#[ignore = "in a guest: make test"]
fn a_guard_whose_pin_was_removed_is_missed_and_not_lost_by_an_upgrade() {
    let _attachments = Attachments::lock();
    let before = host_state(&[]);
    onramp("attach search --guard goodput=-10%").ok();
    std::fs::remove_file(pin("search/guard")).unwrap();
    assert_eq!(cli::state("search").as_deref(), Some("interrupted"));
    let there = host_state(&[]);
    assert!(onramp("upgrade search").refused(1).contains("onramp detach search"));
    assert_eq!(host_state(&[]), there);
    onramp("detach search").ok();
    assert_eq!(host_state(&[]), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn files_say_what_is_guarded() {
    let _attachments = Attachments::lock();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("guard.toml");
    let apply = |guard: &str| {
        std::fs::write(&file, format!("version = 1\n[attach.search]\n{guard}\n")).unwrap();
        onramp(&format!("apply --config {}", file.display())).ok()
    };
    apply("guard = 'goodput=-10%'");
    assert_eq!(guard()["control_share_pct"], 10.0);
    let generation = || json("status")["algorithms"][0]["generation"].clone();
    let first = generation();
    apply("guard = 'goodput=-10%'");
    assert_eq!(generation(), first);
    let said = apply("guard = 'goodput=-10%'\ncontrol_share = '20%'");
    assert!(said.names(&["search", "--guard goodput=-10%"]), "{said}");
    assert_eq!(guard()["control_share_pct"], 20.0);
    apply("");
    assert_eq!(json("status --guard")["guarded"], serde_json::json!([]));
}
