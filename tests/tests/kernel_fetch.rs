//! A kernel that comes from elsewhere than Debian's archive, fetched and booted on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use onramp_lab::guest::{Kernel, Series};
use onramp_tests::cli::{Ran, command};
use onramp_tests::skip;
use serde_json::Value;

/// The kernel that is fetched.
const KERNEL: &str = "6.12";

/// A tar archive of a kept kernel, compressed little.
fn pack(kernel: &Kernel, archive: &Path) {
    let directory = kernel.vmlinuz.parent().expect("where it is kept");
    let packed = Command::new("tar")
        .args(["-I", "zstd -1", "-cf"])
        .arg(archive)
        .arg("-C")
        .arg(directory)
        .arg(".")
        .status()
        .expect("tar runs");
    assert!(packed.success());
}

/// A web server on the loopback interface that answers every request with this content; its URL.
fn serve(content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let request = BufReader::new(stream.try_clone().expect("the same connection"));
            assert!(request.lines().map_while(Result::ok).any(|line| line.is_empty()));
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", content.len());
            // A client that has gone is one that refused.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content));
        }
    });
    format!("http://{address}/kernel.tar.zst")
}

fn lab(cache: &Path, arguments: &str) -> Ran {
    let mut command = command(arguments.split_whitespace());
    command.env("ONRAMP_CACHE", cache).output().expect("it runs").into()
}

/// A transfer on the kernel of a cache: image, release and packets.
fn transfer(cache: &Path, place: &Path) -> Value {
    let run = format!(
        "--json -q lab compare --kernel {KERNEL} --profile terrestrial --arms ramp --bytes 100k -n 1 --fresh -o {}",
        place.display()
    );
    let result = lab(cache, &run).report();
    let run = result["arms"][0]["runs"][0].clone();
    assert_eq!(run["valid"], true, "{result}");
    run["digest"].clone()
}

#[test]
fn a_kernel_from_a_url_boots_and_does_what_the_one_from_debian_does() {
    let series = Series::find(KERNEL).unwrap();
    let Ok(kernel) = series.kept() else {
        return skip("no kernel is kept: `onramp lab kernel fetch`");
    };
    let place = tempfile::tempdir().unwrap();
    let (cache, archive) = (place.path().join("cache"), place.path().join("kernel.tar.zst"));
    pack(&kernel, &archive);
    let url = serve(fs::read(&archive).unwrap());
    let sums = Command::new("sha256sum").arg(&archive).output().expect("sha256sum runs").stdout;
    let digest = String::from_utf8(sums).unwrap().split_whitespace().next().unwrap().to_owned();

    let wrong = format!("lab kernel fetch {KERNEL} --from {url} --sha256 {}", "0".repeat(64));
    let error = lab(&cache, &wrong).refused(1);
    assert!(error.contains(&digest) && error.contains(&"0".repeat(64)), "{error}");
    assert_eq!(lab(&cache, "--json lab kernel list").report()["kernels"][1]["release"], Value::Null);

    let fetched = lab(&cache, &format!("--json lab kernel fetch {KERNEL} --from {url} --sha256 {digest}"));
    let fetched: Value = serde_json::from_str(&fetched.ok()).unwrap();
    assert_eq!(fetched["kernels"][0]["release"], kernel.release);
    let left: Vec<_> = fs::read_dir(cache.join("kernels").join(KERNEL)).unwrap().collect();
    assert_eq!(left.len(), 3, "the kernel, the link to it and a lock: {left:?}");

    // A cache of its own for results, so that both run.
    let ours = place.path().join("ours");
    fs::create_dir_all(ours.join("kernels").join(KERNEL)).unwrap();
    let directory = kernel.vmlinuz.parent().unwrap();
    std::os::unix::fs::symlink(directory, ours.join("kernels").join(KERNEL).join("current")).unwrap();
    let [theirs, same] =
        [(&cache, "theirs"), (&ours, "same")].map(|(cache, name)| transfer(cache, &place.path().join(name)));
    assert!(theirs.is_string());
    assert_eq!(theirs, same);
}
