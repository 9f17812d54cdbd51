//! What [`Attachments`] notices.

use libbpf_rs::{MapHandle, MapType};
use onramp_tests::Attachments;

#[test]
#[ignore = "in a guest: make test"]
#[should_panic(expected = "left behind: [\"map ")]
fn a_test_that_leaves_a_map_behind_fails() {
    let _attachments = Attachments::lock();
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let map = MapHandle::create(MapType::Array, Some("left"), 4, 4, 1, &options).unwrap();
    std::mem::forget(map);
}
