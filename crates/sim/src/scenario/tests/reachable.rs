//! What a search finds that a flow can reach.

use super::*;
use motet::random::Rng;

/// The runs of a scenario, searched.
fn searched(text: &str) -> Vec<RunResult> {
    let plan = plan(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let mut results = results(&plan);
    let searched_s = search(&plan, &mut results, false);
    let most = plan.search_seconds(&results);
    assert!(searched_s <= most + 0.1, "{text}: {searched_s} of {most} s");
    results
}

/// Searches what the runs of a plan can reach, or is stopped before it begins; gives the seconds
/// of virtual time that it took.
fn search(plan: &Plan, results: &mut [RunResult], is_stopped: bool) -> f64 {
    let (stop, done_ms) = (AtomicBool::new(is_stopped), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.search_reachable(results, &watch);
    done_ms.into_inner() as f64 / 1e3
}

/// On chains that are drawn, what is reachable lies between the goodput and the bound.
#[test]
fn what_is_reachable_lies_between_the_goodput_and_the_bound() {
    let mut rng = Rng::from_seed([20_261_130, 8]);
    for _ in 0..6 {
        let hops = 2 + rng.below(4);
        let profile = ["hamilton", "nrf52840", "telosb"][rng.below(3) as usize];
        let window = 2 + rng.below(7);
        let pace = [
            "",
            "hold_ms = 5\n",
            "pacing = \"off\"\n",
            "pace_percent = 130\n",
        ];
        let pace = pace[rng.below(4) as usize];
        let ends = ["", "from = \"host\"\nto = -1\n"][rng.below(2) as usize];
        let text = format!(
            "seed = {}\nduration_s = 8\nwarmup_s = 2\n[topology]\nchain = {hops}\n[radio]\n\
             profile = \"{profile}\"\n[stack]\nwindow_segments = {window}\n{pace}[[flow]]\n{ends}",
            rng.below(1_000)
        );
        let runs = searched(&text);
        let [run] = &runs[..] else {
            panic!("one point, one seed")
        };
        let (goodput, bound) = (run.goodput_kbps(), run.bound_kbps.unwrap());
        let reachable = run.reachable_kbps.unwrap();
        assert!(
            goodput <= reachable && reachable <= bound,
            "{text}: {goodput} {reachable} {bound}"
        );
    }
}

/// A hop that is held for twice as long as its frames need leaves half of the air idle, and the
/// search finds that; it finds the same each time.
#[test]
fn the_search_finds_a_better_pace() {
    let text = "duration_s = 12\nwarmup_s = 2\n[topology]\nchain = 3\n[stack]\nhold_ms = 25\n\
                [[flow]]\n";
    let runs = searched(text);
    let (goodput, reachable) = (runs[0].goodput_kbps(), runs[0].reachable_kbps.unwrap());
    assert!(reachable > 1.5 * goodput, "{goodput} {reachable}");
    assert_eq!(searched(text), runs);
}

/// Where no bound is known, nothing is searched for, and a search that is stopped notes nothing.
#[test]
fn only_runs_with_a_bound_are_searched() {
    let text = format!("{CHAIN}from = 2\n[[flow]]\nfrom = 1\n");
    assert_eq!(searched(&text)[0].reachable_kbps, None);
    let plan = plan(CHAIN).unwrap();
    let mut results = results(&plan);
    search(&plan, &mut results, true);
    assert!(results[0].bound_kbps.is_some());
    assert_eq!(results[0].reachable_kbps, None);
}
