//! Each cure against its attack: without it something breaks, with it nothing does.

use super::driver::{Seen, Setup, World, traffic};
use super::*;

/// Runs every kind of traffic with `changes` for `segments` each.
fn run(segments: u64, changes: impl Fn(Setup) -> Setup, prepare: fn(&mut Tcphc<'static>)) -> Seen {
    let mut seen = Seen::default();
    for (at, setup) in traffic().into_iter().enumerate() {
        let setup = Setup {
            seed: at as u64 + 1,
            ..setup
        };
        let mut world = World::new(changes(setup), prepare);
        world.run(segments);
        seen.add(&world.seen);
    }
    seen
}

fn reordering(setup: Setup) -> Setup {
    Setup {
        loss: 50,
        reorder: 300,
        late: 150,
        ..setup
    }
}

/// Restored headers are identical, also out of order.
#[test]
fn nothing_is_misread_on_paths_that_keep_the_order() {
    for mode in [Mode::Default, Mode::InOrder, Mode::Strict] {
        for loss in [0, 50, 300] {
            let seen = run(
                2_000,
                |setup| Setup {
                    mode,
                    loss,
                    ..setup
                },
                |_| {},
            );
            assert_eq!(seen.silent(), 0, "{mode:?}, loss {loss}: {seen:?}");
            assert!(
                seen.forms[2][1] > seen.sent / 8,
                "most are compressed: {seen:?}"
            );
        }
    }
}

/// Restored headers are identical, also out of order.
#[test]
fn reordering_misleads_by_mode() {
    let strict = run(
        4_000,
        |s| {
            reordering(Setup {
                mode: Mode::Strict,
                ..s
            })
        },
        |_| {},
    );
    assert_eq!(strict.silent(), 0, "{strict:?}");
    let default = run(4_000, reordering, |_| {});
    assert_eq!(default.wrong_data + default.never_sent, 0, "{default:?}");
    assert!(default.wrong * 100 < default.exact, "{default:?}");
}

#[test]
fn the_driver_sees_what_the_draft_gets_wrong() {
    let draft = |loss| {
        move |s| Setup {
            mode: Mode::Draft,
            timestamps: false,
            loss,
            ..s
        }
    };
    let seen = run(2_000, draft(100), |_| {});
    assert!(seen.silent() * 1000 >= seen.exact, "{seen:?}");
}

/// One kind of path with a cure taken away, against the same with it.
fn without(
    changes: impl Fn(Setup) -> Setup + Copy,
    prepare: fn(&mut Tcphc<'static>),
) -> (Seen, Seen) {
    let changes = |setup: Setup| {
        let setup = changes(setup);
        let trouble = if setup.loss == 0 { 0 } else { setup.trouble };
        Setup { trouble, ..setup }
    };
    (run(20_000, changes, prepare), run(20_000, changes, |_| {}))
}

/// An old window never counts as a new one: probes and copies that come late say none. What the
/// receiver then refuses is what its sender had left out in good faith.
#[test]
fn the_driver_finds_windows_that_only_seemed_new() {
    // Windows that close often, so that they are probed often.
    let lazy = |setup| Setup { lazy: 985, ..setup };
    let (off, on) = without(lazy, |t| t.without(&[Cure::Probes]));
    assert_eq!((on.dropped, on.silent()), (0, 0), "{on:?}");
    assert!(off.dropped > 0, "{off:?}");
    let strict = |setup| {
        reordering(Setup {
            mode: Mode::Strict,
            ..setup
        })
    };
    let (off, on) = without(strict, |t| t.without(&[Cure::LateRefresh]));
    assert!(off.dropped * 100 > on.dropped * 103, "{off:?} {on:?}");
}

#[test]
fn the_driver_finds_references_that_were_wrong_for_ever() {
    let (off, on) = without(|s| s, |t| t.without(&[Cure::Poisoning]));
    assert_eq!((on.dropped, on.silent()), (0, 0), "{on:?}");
    assert!(off.dropped > 100, "{off:?}");
}

#[test]
fn the_driver_finds_confirmations_that_were_none() {
    let lossy = |setup| Setup { loss: 100, ..setup };
    let (off, on) = without(lossy, |t| t.without(&[Cure::SharedTimestamp]));
    assert_eq!(on.silent(), 0, "{on:?}");
    assert!(off.silent() > 0, "{off:?}");
    for (cure, prepare) in [
        (
            Cure::Recreated,
            (|t| t.without(&[Cure::Recreated])) as fn(&mut Tcphc<'static>),
        ),
        (Cure::Reboot, |t| t.without(&[Cure::Reboot])),
    ] {
        let (off, _) = without(lossy, prepare);
        assert!(off.dropped * 2 > on.dropped * 3, "{cure:?} {off:?} {on:?}");
    }
}

/// What waits for a mote that sleeps grows older than frames do, so 16 bits of a number are no
/// proof of the rest there. Copies come up to 300 segments late, over a period of 65,536 bytes;
/// readers leave a byte now and then, so that a window that is one off makes up for the period.
#[test]
fn the_driver_finds_what_has_waited_for_a_sleeper_too_long() {
    for mode in [Mode::Default, Mode::Strict] {
        let setup = Setup {
            mode,
            mss: 4_000,
            window: 16_000,
            lazy: 500,
            leaves: 500,
            late: 300,
            late_by: 300,
            frames_expire: false,
            ..Setup::CALM
        };
        let seen = |prepare: fn(&mut Tcphc<'static>)| {
            let mut world = World::new(setup, prepare);
            world.run(40_000);
            world.seen
        };
        let off = seen(|t| t.without(&[Cure::Lifetime]));
        assert!(off.wrong_data > 0 && off.never_sent > 0, "{off:?}");
        let on = seen(|_| {});
        assert_eq!(on.wrong_data + on.never_sent, 0, "{mode:?}: {on:?}");
        // The default mode may take a value that was sent for another one, as on any path that
        // reorders.
        assert!(mode == Mode::Default || on.wrong == 0, "{on:?}");
    }
}

/// Low bits that join high ones they did not belong to.
#[test]
fn values_that_were_never_sent() {
    let without = run(4_000, reordering, |t| t.without(&[Cure::NeverSent]));
    assert!(without.never_sent > 0, "{without:?}");
}
