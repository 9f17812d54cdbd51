//! Flows of all controls, which the server shows where nothing is attached.

use super::*;

#[test]
#[ignore = "in a guest: make test"]
fn where_nothing_is_attached_flows_of_all_controls_show_until_something_is() {
    let _attachments = Attachments::lock();
    let wire = Wire::lay(DELAY, |_| Fate::Deliver);
    let mut sender = Sender::connect(wire, "cubic");
    sender.deliver(300_000);
    let port = sender.stream.local_addr().unwrap().port();
    let start = |arguments: &[&str]| Server::start_by(sender.wire.near.command(cli::binary()), arguments);
    let of = |server: &Server| -> Option<Value> {
        let others = server.get("/api/status")["others"].take();
        let found = others["flows"].as_array()?.iter().find(|flow| flow["local_port"] == port).cloned();
        assert!(found.is_none() || others["total"].as_u64() >= Some(1), "{others}");
        found
    };
    for (masked, address) in [(false, "192.0.2.2"), (true, "192.0.2.0")] {
        let server = start(if masked { &["--mask-addresses"] } else { &[] });
        assert!(eventually(|| of(&server).is_some()));
        let other = of(&server).unwrap();
        assert_eq!(
            (&other["congestion_control"], &other["remote_address"]),
            (&"cubic".into(), &address.into())
        );
        assert!(other["acknowledged_bytes"].as_u64() >= Some(300_000), "{other}");
        assert!(
            other["delivery_rate_bytes_per_s"].as_u64() > Some(0) && other["limited"].is_string(),
            "{other}"
        );
        let status = server.get("/api/status");
        agrees(&server.get("/api/openapi.json"), "Status", &status);
        assert_eq!(status["confinement"]["seccomp"], true, "it looks though it can open no socket");
    }
    let server = start(&[]);
    assert!(eventually(|| of(&server).is_some()));
    onramp("attach plain").ok();
    assert!(
        eventually(|| server.get("/api/status")["others"].is_null()),
        "they are gone once something is attached"
    );
    let ran = server.end(Signal::SIGTERM);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}
