//! The lab's download time against a browser's kind of download: curl from a real web server over the same link.

use std::fs::{self, File};
use std::thread;
use std::time::Duration;

use onramp_lab::experiment::{Amount, Arm, Plan, run_once};
use onramp_lab::host::{Hosts, SENDER};
use onramp_loader::AttachOptions;
use onramp_profiles::Profile;
use onramp_tests::Attachments;
use onramp_tests::cli::public_directory;
use onramp_tests::servers::Server;

const APACHE: &str = "/usr/sbin/apache2";
const PORT: u16 = 8080;
const BYTES: u64 = 15_000_000;
const SEED: u64 = 7;

fn profile() -> Profile {
    Profile::parse(include_str!("../../profiles/geo.toml"), "geo.toml").unwrap()
}

fn serve(hosts: &Hosts) -> Server {
    let directory = public_directory();
    fs::create_dir(directory.path().join("www")).unwrap();
    File::create(directory.path().join("www/object")).unwrap().set_len(BYTES).unwrap();
    let modules = "/usr/lib/apache2/modules";
    let configuration = format!(
        "ServerRoot ROOT\nPidFile ROOT/pid\nErrorLog ROOT/error.log\nServerName lab\nListen {SENDER}:{PORT}\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\nLoadModule authz_core_module {modules}/mod_authz_core.so\n\
         DocumentRoot ROOT/www\nEnableSendfile On\n"
    );
    let mut command = hosts.sender().command(APACHE);
    command.args(["-X", "-f"]);
    Server::start(directory, command, &configuration)
}

fn curl_seconds(hosts: &Hosts) -> f64 {
    let url = format!("http://{SENDER}:{PORT}/object");
    for _ in 0..50 {
        let output = hosts
            .receiver()
            .command("curl")
            .args(["--silent", "--fail", "--max-time", "90", "--output", "/dev/null"])
            .args(["--write-out", "%{time_total} %{time_pretransfer} %{size_download}", &url])
            .output()
            .unwrap();
        if output.status.success() {
            let text = String::from_utf8(output.stdout).unwrap();
            let figures: Vec<f64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
            assert_eq!(figures[2] as u64, BYTES, "{text}");
            return figures[0] - figures[1];
        }
        // Connection refused: the server is not up yet.
        thread::sleep(Duration::from_millis(100));
    }
    panic!("the web server did not answer");
}

#[test]
#[ignore = "in a guest: make test"]
fn curl_from_a_web_server_takes_as_long_as_the_labs_download() {
    let attachments = Attachments::lock();
    attachments.attach(&AttachOptions::new(onramp_loader::find("plain").unwrap().parameters()));

    let hosts = Hosts::set_up(&profile().host, &profile().link, SEED, 1_000_000).unwrap();
    hosts.use_congestion_control("onramp_plain").unwrap();
    let server = serve(&hosts);
    let curl = curl_seconds(&hosts);
    drop(server);
    drop(hosts);

    let plan = Plan { amount: Amount::Bytes(BYTES), ..Plan::new(profile()) };
    let arm = Arm { congestion_control: "onramp_plain".into(), ..Arm::stock("plain") };
    let lab = run_once(&plan, &arm, SEED).unwrap();
    // Half a second for the request and what differs from run to run.
    println!("curl {curl:.2} s, lab {:.2} s", lab.seconds);
    assert!((curl - lab.seconds).abs() < 0.2 * lab.seconds + 0.6, "curl {curl} s, lab {} s", lab.seconds);
}
