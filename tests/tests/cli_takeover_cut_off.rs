//! Upgrades that are killed, or get an error, at each of their steps: what is left is explained, nothing is lost, and
//! one command finishes or clears it.

use onramp_net::Namespace;
use onramp_tests::Attachments;
use onramp_tests::cli::{self, DEFAULT, host_state, json, onramp, state};
use onramp_tests::faults::{Disturbed, Traced};
use onramp_tests::traffic::{Transfer, namespace};

/// fixed with a parameter of its own, as the default of a namespace.
fn attached(place: &Namespace) {
    cli::inside(place, "attach fixed --default --set exit_window_bytes=70000").ok();
}

fn window() -> u64 {
    json("tune fixed")["parameters"]["exit_window_bytes"].as_u64().unwrap()
}

#[test]
#[ignore = "in a guest: make test"]
fn an_upgrade_that_is_killed_or_given_an_error_at_any_step_is_explained_and_finished_or_cleared() {
    disturbed(Disturbed::ByTurns);
}

mod minutes {
    use super::*;

    #[test]
    #[ignore = "for minutes: tests/guests.sh --minutes cli_takeover_cut_off"]
    fn an_upgrade_that_is_killed_and_given_an_error_at_each_step_is_explained_and_finished_or_cleared() {
        disturbed(Disturbed::BothWays);
    }
}

fn disturbed(how: Disturbed) {
    let _attachments = Attachments::lock();
    let place = namespace();
    place.sysctl_set(DEFAULT, "reno").unwrap();
    let before = host_state(&[&place]);
    let upgrade = Traced { namespace: &place, arguments: "upgrade fixed".into() };
    attached(&place);
    let whole = host_state(&[&place]);
    let mut transfer = Transfer::start(&place, 1_000_000);
    let (mut explained, mut undone) = (0, 0);
    for (number, (call, error)) in upgrade.steps().enumerate() {
        for killed in how.kills(number) {
            let how = if killed {
                upgrade.killed_before(&call);
                "killed".to_owned()
            } else {
                let ran = upgrade.fail(&call, error);
                format!("{error:?}: {:?} {}", ran.code, ran.stderr.trim())
            };
            let found = state("fixed");
            println!("{how} at {call}: {}", found.as_deref().unwrap_or("nothing"));
            match found.as_deref() {
                // The old code or the newer, whole.
                Some("attached") => {
                    assert_eq!(host_state(&[&place]), whole, "{how} at {call}");
                    assert_eq!(window(), 70_000, "{how} at {call}");
                    undone += usize::from(how.contains("Some(1)") || how.contains("Some(4)"));
                }
                Some("interrupted") => {
                    let said = onramp("status").ok();
                    assert!(said.contains("an upgrade was cut off"), "{said}");
                    for refused in ["tune fixed exit_window_bytes=9", "attach fixed", "confirm fixed"] {
                        let error = onramp(refused).refused(1);
                        assert!(error.contains("onramp upgrade fixed"), "{error}");
                    }
                    explained += 1;
                }
                other => panic!("{other:?}: {how} at {call}"),
            }
            assert!(transfer.goes_on(), "{how} at {call}");
            // Either of the two, by turns.
            if number % 3 == 0 {
                onramp("detach --all").ok();
                assert_eq!(host_state(&[&place]), before, "{how} at {call}");
                attached(&place);
                // A detach has moved what went on before.
                transfer = Transfer::start(&place, 1_000_000);
            } else {
                cli::inside(&place, "upgrade fixed").ok();
            }
            assert_eq!(host_state(&[&place]), whole, "{how} at {call}");
            assert_eq!(window(), 70_000, "{how} at {call}");
            assert_eq!(json("status")["algorithms"][0]["older_code"], 0, "{how} at {call}");
        }
    }
    println!("{explained} explained, {undone} undone");
    assert!(explained > 5 && undone > 5);
    assert!(transfer.goes_on());
    drop(transfer);
    onramp("detach --all").ok();
    assert_eq!(host_state(&[&place]), before);
}
