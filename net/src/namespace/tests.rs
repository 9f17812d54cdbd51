// SPDX-License-Identifier: MIT OR GPL-2.0-only
use std::process::Stdio;

use super::*;

fn namespace() -> Namespace {
    Namespace::create().unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn created_namespace_is_another_and_the_caller_stays() {
    let namespace = namespace();
    let before = Namespace::current().unwrap();
    assert_ne!(namespace, before);
    let inside = namespace.run(|| Namespace::current().unwrap()).unwrap();
    assert_eq!(inside, namespace);
    assert_eq!(Namespace::current().unwrap(), before);
}

#[test]
#[ignore = "in a guest: make test"]
fn cookies_are_unique_and_stable() {
    let (a, b) = (namespace(), namespace());
    assert_ne!(a.cookie().unwrap(), b.cookie().unwrap());
    assert_eq!(a.cookie().unwrap(), a.clone().cookie().unwrap());
}

#[test]
#[ignore = "in a guest: make test"]
fn sysctls_are_per_namespace() {
    let namespace = namespace();
    let name = "net.ipv4.tcp_rmem";
    let ours = Namespace::current().unwrap();
    let before = ours.sysctl_get(name).unwrap();
    namespace.sysctl_set(name, "4096 131072 268435456").unwrap();
    assert_eq!(namespace.sysctl_get(name).unwrap(), "4096\t131072\t268435456");
    assert_eq!(ours.sysctl_get(name).unwrap(), before);
    let error = namespace.sysctl_set("net.ipv4.no_such", "1").unwrap_err().to_string();
    assert!(error.contains("net.ipv4.no_such") && error.contains("No such file"), "{error}");
}

#[test]
#[ignore = "in a guest: make test"]
fn commands_run_inside() {
    let namespace = namespace();
    let output = namespace.command("readlink").arg("/proc/self/ns/net").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("net:[{}]", namespace.inode()));
}

#[test]
#[ignore = "in a guest: make test"]
fn commands_die_with_their_parent_thread() {
    let namespace = namespace();
    let mut child = std::thread::scope(|scope| {
        let spawn = || namespace.command("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        scope.spawn(spawn).join().unwrap()
    });
    // The kernel sends the signal when the thread has ended; wait() would hang for a minute if it did not.
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
}

#[test]
#[ignore = "in a guest: make test"]
fn panics_reach_the_caller_with_their_message() {
    let namespace = namespace();
    let panic = std::panic::catch_unwind(|| namespace.run(|| panic!("inside"))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"inside"));
}

#[test]
#[ignore = "in a guest: make test"]
fn list_finds_a_namespace_held_by_descriptor_and_forgets_it() {
    let namespace = namespace();
    let find = |inode| Namespace::all().unwrap().into_iter().find(|found| found.inode() == inode);
    let found = find(namespace.inode()).expect("held by our descriptor");
    assert!(found.label().unwrap().starts_with(&format!("pid {} fd ", std::process::id())));
    assert!(find(Namespace::current().unwrap().inode()).is_some());
    let cookie = namespace.cookie().unwrap();
    drop((namespace, found));
    // The inode number can be reused by a parallel test, the cookie never. A parallel test's child has all our
    // descriptors between fork and exec, hence the second look.
    let gone = || Namespace::all().unwrap().iter().all(|other| other.cookie().ok() != Some(cookie));
    assert!((0..50).any(|_| gone() || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        false
    }));
}

#[test]
fn other_files_are_refused() {
    let error = Namespace::open("/proc/self/ns/mnt").unwrap_err();
    assert!(matches!(error, NamespaceError::NotANamespace { .. }), "{error}");
    let error = Namespace::open("/dev/null").unwrap_err();
    assert!(matches!(error, NamespaceError::NotANamespace { .. }), "{error}");
    let error = Namespace::open("/no/such").unwrap_err();
    assert!(error.to_string().contains("/no/such"), "{error}");
}
