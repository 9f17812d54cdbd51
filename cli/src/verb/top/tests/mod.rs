//! The screen without a terminal: what events, keys and errors make of 80 columns and 24 lines.
//!
//! Pictures lie in `snapshots/`; with `ONRAMP_SNAPSHOTS=write` they are written instead of compared.

mod fixtures;
mod panic;

use std::fs;
use std::path::Path;

use onramp_loader::algorithm::{Parameters, find};
use onramp_loader::telemetry::{Item, Lost, RestartPayload, UndoPayload, What};
use onramp_loader::{ExitReason, ParameterSet, Tuned};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::app::{Action, App};
use super::screen;
use super::theme::Theme;
use crate::verb::others::OtherFlow;
use fixtures::{NONE, app, begin, carried, end, event, exit_at, round};

fn press(app: &mut App, keys: &str) -> Option<Action> {
    let mut action = None;
    for letter in keys.chars() {
        let code = match letter {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        };
        action = app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    action
}

fn drawn(app: &App, color: bool, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, app, Theme { color })).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let lines = buffer.content().chunks(width).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn screen_of(app: &App) -> String {
    text(&drawn(app, false, 80, 24))
}

fn check(name: &str, app: &App) {
    let shown = screen_of(app);
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verb/top/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("ONRAMP_SNAPSHOTS").is_some_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &shown).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == wanted, "{name} is now\n{shown}\nand was\n{wanted}");
}

fn open(app: &mut App, id: u64) {
    app.selected = Some(id);
    assert_eq!(press(app, "\n"), Some(Action::Open(id)));
}

#[test]
fn the_table() {
    let mut app = app();
    check("table", &app);
    app.model.add(&Item::Lost(Lost { events: 17, ..Lost::default() }));
    assert!(screen_of(&app).lines().next().unwrap().contains("17 events lost"));
    assert!(screen_of(&App::default()).contains("No flow yet"));
}

#[test]
fn a_flow_with_its_exit_and_the_norm_against_the_threshold() {
    let mut app = app();
    open(&mut app, 1);
    check("flow", &app);
    let shown = screen_of(&app);
    assert!(shown.contains("exited slow start by algorithm at 350 ms"), "{shown}");
    assert!(shown.contains("21 %, threshold 35 %"), "{shown}");
    assert_eq!(press(&mut app, "\x1b"), Some(Action::Close(1)));
    assert!(screen_of(&app).contains("REMOTE"));
}

#[test]
fn the_pictures_of_best_and_hystartpp() {
    let mut app = app();
    let mut pairs = [u32::MAX; 16];
    // Around 100 Mbit/s: 80,000 ps for each byte.
    for (pair, percent) in pairs.iter_mut().zip([140, 100, 90, 100, 110, 100, 100, 95]) {
        *pair = 800 * percent;
    }
    app.model.add(&round(2, "best", 1, &[("estimate", &[12_500]), ("pairs", &pairs)]));
    open(&mut app, 2);
    check("best", &app);
    assert!(screen_of(&app).contains("71.4 Mbit/s to 111 Mbit/s"));
    press(&mut app, "\x1b");
    open(&mut app, 3);
    assert!(screen_of(&app).contains("CONSERVATIVE SLOW START"), "{}", screen_of(&app));
}

#[test]
fn every_export_is_shown() {
    for algorithm in onramp_loader::algorithm::all() {
        let mut app = App::default();
        app.model.add(&begin(1, algorithm.name(), "198.51.100.7:443"));
        app.model.add(&round(1, algorithm.name(), 0, &[]));
        open(&mut app, 1);
        let shown = text(&drawn(&app, false, 160, 48));
        for export in algorithm.exports() {
            assert!(shown.contains(export.name), "{} in {shown}", export.name);
        }
    }
}

#[test]
fn the_help() {
    let mut app = app();
    press(&mut app, "?");
    check("help", &app);
    press(&mut app, "x");
    assert!(!screen_of(&app).contains(" keys ──"), "any key closes it");
}

#[test]
fn where_nothing_is_attached_the_flows_of_other_controls_are_shown_until_one_of_ours_is() {
    let mut app = App::default();
    assert!(screen_of(&app).contains("No flow yet"));
    app.others = Some(vec![
        OtherFlow::example("192.0.2.1:443", "198.51.100.7:50000", "cubic", 2_000_000),
        OtherFlow::example("192.0.2.1:443", "[2001:db8:0:1::1234:5678]:50001", "bbr", 81_000_000),
    ]);
    check("others", &app);
    for width in 1..200 {
        drawn(&app, true, width, 1 + width % 7);
    }
    assert!(text(&drawn(&app, false, 140, 24)).contains("RETRANSMITTED"));
    app.model.add(&begin(1, "plain", "198.51.100.7:50000"));
    let shown = screen_of(&app);
    assert!(shown.contains("plain") && !shown.contains("cubic"), "{shown}");
}

#[test]
fn sorting_keeps_the_chosen_flow() {
    let mut app = app();
    let order = |app: &App| app.shown().iter().map(|flow| flow.id).collect::<Vec<_>>();
    assert_eq!(order(&app), [1, 4, 3, 2], "by bytes");
    press(&mut app, "j");
    assert_eq!(app.selected, Some(4));
    press(&mut app, ">");
    assert_eq!(
        order(&app),
        [1, 2, 4, 3],
        "by remote address, after the last column the first: version 4 before 6"
    );
    assert_eq!(app.selected, Some(4));
    press(&mut app, "r");
    assert_eq!(order(&app), [3, 4, 2, 1]);
    press(&mut app, ">");
    assert_eq!(app.current().unwrap().id, 4);
}

#[test]
fn filters_are_those_of_flows_and_errors_stay_on_the_screen() {
    let mut app = app();
    press(&mut app, "/dst 198.51.100.0/33\n");
    assert!(screen_of(&app).contains("0 to 32"), "{}", screen_of(&app));
    press(&mut app, "\x08\x0824\n");
    assert_eq!(app.shown().len(), 2);
    assert!(screen_of(&app).contains("filter: dst 198.51.100.0/24"));
    press(&mut app, "\x1b");
    assert_eq!(app.shown().len(), 4);
}

fn tuned(before: &Parameters, settings: &[String]) -> Result<Tuned, String> {
    let set = |parameters: &Parameters| ParameterSet {
        number: 0,
        profile: "default".into(),
        generation: 0,
        parameters: parameters.clone(),
        telemetry_max: onramp_loader::telemetry::Level::Ack,
    };
    let mut after = before.clone();
    after.assign(settings).map_err(|error| onramp_loader::Error::from(error).to_string())?;
    Ok(Tuned { before: set(before), after: set(&after) })
}

#[test]
fn tuning_shows_what_is_wrong_what_changed_and_the_undo() {
    let mut app = app();
    let defaults = find("search").unwrap().parameters();
    app.selected = Some(1);
    let settings = |text: &str| vec![text.to_owned()];
    assert_eq!(press(&mut app, "tthreshold_pct=300\n"), Some(Action::Tune(1, settings("threshold_pct=300"))));
    app.tuned(1, tuned(&defaults, &settings("threshold_pct=300")));
    check("tune_error", &app);
    assert!(screen_of(&app).contains("0..100 percent"));

    assert_eq!(press(&mut app, "\x08\n"), Some(Action::Tune(1, settings("threshold_pct=30"))));
    app.tuned(1, tuned(&defaults, &settings("threshold_pct=30")));
    assert!(
        screen_of(&app).contains("threshold_pct: 0 -> 30; u: undo (threshold_pct=0)"),
        "{}",
        screen_of(&app)
    );
    assert_eq!(press(&mut app, "u"), Some(Action::Tune(1, settings("threshold_pct=0"))));
    assert_eq!(press(&mut app, "u"), None, "once");
    assert_eq!(press(&mut app, "t\n"), None, "nothing typed, nothing done");
    assert!(app.prompt.is_none());
}

#[test]
fn without_colour_nothing_has_one_and_everything_is_still_shown() {
    let mut app = app();
    for id in 1..=4 {
        open(&mut app, id);
        let (plain, coloured) = (drawn(&app, false, 80, 24), drawn(&app, true, 80, 24));
        assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        assert!(coloured.content().iter().any(|cell| cell.fg != Color::Reset));
        assert_eq!(text(&plain), text(&coloured));
        press(&mut app, "\x1b");
    }
}

#[test]
fn any_size_is_drawn() {
    let mut app = app();
    for (width, height) in [(1, 1), (10, 3), (40, 10), (200, 60)] {
        app.open = None;
        drawn(&app, true, width, height);
        for id in 1..=4 {
            app.open = Some(id);
            drawn(&app, true, width, height);
        }
        press(&mut app, "?");
        drawn(&app, true, width, height);
        press(&mut app, "?/dst 1\n");
        drawn(&app, true, width, height);
        press(&mut app, "\x1b");
    }
    assert!(
        text(&drawn(
            &{
                app.open = None;
                app
            },
            false,
            130,
            24
        ))
        .contains("MIN RTT")
    );
}

/// What of a screen has digits in it.
fn figures(screen: &str) -> Vec<String> {
    let drawn = |letter: char| ('\u{2500}'..='\u{28ff}').contains(&letter);
    // `… 6 more` is a number of this screen alone.
    let lines: String = screen
        .lines()
        .map(|line| {
            line.strip_prefix("… ")
                .map_or(line, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest))
                .to_owned()
                + "\n"
        })
        .collect();
    let words = lines.split(|letter: char| letter.is_whitespace() || drawn(letter));
    let words = words.map(|word| word.trim_matches([',', ';', '(', ')', '…']));
    words.filter(|word| word.chars().any(|letter| letter.is_ascii_digit())).map(str::to_owned).collect()
}

#[test]
fn every_number_is_shown_whole_or_not_at_all_from_20_to_300_columns() {
    let mut app = app();
    let long = "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535";
    app.model.add(&begin(9, "ramp", long));
    app.model.add(&round(9, "ramp", 6, &[]));
    app.model.add(&Item::Lost(Lost { events: 1_234_567, ..Lost::default() }));
    app.message = Some("threshold_pct: 26 -> 30, window_bins: 10 -> 11; u: undo (threshold_pct=26)".into());
    for id in [None, Some(1), Some(2), Some(3), Some(4), Some(9)] {
        app.open = id;
        let whole = figures(&text(&drawn(&app, false, 400, 24)));
        for width in 20..=300 {
            let screen = text(&drawn(&app, false, width, 24));
            for figure in figures(&screen) {
                // An address that is longer than the screen is shown without its middle, but with its port.
                let port = figure.split_once('…').and_then(|(_, end)| Some(&end[end.rfind(':')?..]));
                let known = whole.contains(&figure)
                    || port.is_some_and(|port| whole.iter().any(|known| known.ends_with(port)));
                assert!(known, "{figure} at {width}: {screen}");
            }
        }
    }
    app.open = None;
    app.model.remove(9);
    let titles = |width| {
        let screen = text(&drawn(&app, false, width, 24));
        let line = screen.lines().nth(1).unwrap().to_owned();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let titles: Vec<String> = [40, 60, 72, 80, 140, 160].map(titles).into();
    assert_eq!(
        titles,
        [
            "REMOTE ACKED▼",
            "REMOTE STATE RATE ACKED▼",
            "REMOTE ALGORITHM STATE CWND RATE ACKED▼",
            "REMOTE ALGORITHM STATE CWND RTT RATE ACKED▼",
            "REMOTE ALGORITHM STATE CWND RTT RATE ACKED▼ LOCAL SSTHRESH MIN RTT RESENT",
            "REMOTE ALGORITHM STATE CWND RTT RATE ACKED▼ LOCAL SSTHRESH MIN RTT RESENT LIMITED BY",
        ]
    );
}

#[test]
fn flows_are_bounded_and_those_that_ended_go_first() {
    let mut app = App::default();
    for id in 0..5_000 {
        app.model.add(&begin(id, "plain", "198.51.100.7:443"));
        assert!(app.model.flows.len() <= 2_000);
    }
    assert_eq!(app.model.flows.keys().next(), Some(&3_000), "the oldest went");
    app.model.add(&end(4_000, "plain"));
    app.model.add(&begin(9_000, "plain", "198.51.100.7:443"));
    assert!(!app.model.flows.contains_key(&4_000) && app.model.flows.contains_key(&3_000));
    press(&mut app, "x");
    assert_eq!(app.model.flows.len(), 2_000, "none has ended");
    app.model.add(&end(9_000, "plain"));
    press(&mut app, "x");
    assert_eq!(app.model.flows.len(), 1_999);
}

#[test]
fn an_exit_that_is_taken_back_is_none_and_events_of_unknown_flows_are_ignored() {
    let mut app = app();
    let undo = UndoPayload { cwnd: 10, restored: 20, exit_undone: 1, ..UndoPayload::default() };
    app.model.add(&event(4, "plain", 2_000_000, What::Undo(undo)));
    let restart = RestartPayload { slow_starts: 2, cwnd: 20, ssthresh: NONE, ..RestartPayload::default() };
    app.model.add(&event(4, "plain", 2_000_001, What::Restart(restart)));
    assert_eq!(app.model.flows[&4].state(), "slow start");
    app.model.add(&event(77, "plain", 2_000_002, What::Restart(restart)));
    assert_eq!(app.model.flows.len(), 4);
}

#[test]
fn what_leaving_early_has_cost_is_known_from_rounds_in_which_the_window_was_the_limit() {
    // 160 segments at the exit after five rounds, then sixteen more a round, of a path of 1,600.
    let flow = |cwnd_limited_us: u32| {
        let mut app = App::default();
        app.model.add(&begin(7, "plain", "198.51.100.7:443"));
        for number in 0..120u32 {
            if number == 5 {
                app.model.add(&exit_at(7, "plain", ExitReason::Loss, 500_000, 160));
            }
            let segments = if number < 5 { 10 << number } else { (160 + 16 * (number - 4)).min(1_600) };
            app.model.add(&carried(7, 100_000 * u64::from(number + 1), segments, cwnd_limited_us));
        }
        app.model.flows[&7].regret()
    };
    let regret = flow(50_000).unwrap();
    assert!((regret.window_to_bdp - 0.1).abs() < 0.001, "{regret:?}");
    // 1,520 are carried from the 88th round on, 8.3 s after the exit; doubling takes 3.3 rounds.
    assert!(regret.early_us.abs_diff(7_970_000) <= 200_000, "{regret:?}");
    assert_eq!(flow(49_999), None, "the application was the limit");
}

#[test]
fn what_would_steer_the_terminal_is_shown_or_replaced() {
    const HOSTILE: &str = "a\x1b[2J\x07b\r\n\u{9b}31m\u{202e}c\u{2066}";
    let steering = |buffer: &Buffer| {
        let cells = buffer.content().iter().map(|cell| cell.symbol().to_owned());
        cells.filter(|symbol| symbol.contains(crate::output::is_terminal_control)).collect::<Vec<_>>()
    };
    let mut app = app();
    app.message = Some(HOSTILE.into());
    app.filter_text = HOSTILE.into();
    let drawn_app = drawn(&app, true, 120, 24);
    assert_eq!(steering(&drawn_app), Vec::<String>::new());
    assert!(
        text(&drawn_app).contains(r"a\u001b[2J\u0007b\u000d\u000a\u009b31m\u202ec\u2066"),
        "{}",
        text(&drawn_app)
    );
    // What is typed stays as long as it is; the error says what was in it.
    press(&mut app, "/");
    let prompt = app.prompt.as_mut().unwrap();
    (prompt.text, prompt.error) = (HOSTILE.into(), Some(HOSTILE.into()));
    let prompted = drawn(&app, true, 120, 24);
    assert_eq!(steering(&prompted), Vec::<String>::new());
    assert!(text(&prompted).contains(r"b\u000d\u000a\u009b31m\u202ec"), "{}", text(&prompted));
}
