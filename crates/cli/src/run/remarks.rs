//! Remarks below a table: runs that failed, flows that did not end, figures that were left out.

use motet_lab::scenario::{DROPS, FlowResult, Outcome, Plan, RunResult};

use crate::{
    error::Error,
    output::{self, BAD, BOLD, Out},
};

/// Names the nodes that are off since no path leads from them to the border router.
fn print_left_out(plan: &Plan, out: Out) -> Result<(), Error> {
    let mut left_out: Vec<&[usize]> = plan
        .points
        .iter()
        .map(|point| &point.scenario.left_out[..])
        .collect();
    left_out.dedup();
    for nodes in left_out
        .into_iter()
        .filter(|nodes| !nodes.is_empty())
        .take(SHOWN)
    {
        output::line_to(
            out,
            format_args!(
                "{BOLD}left out{BOLD:#}: no path of links leads to the border router from {}",
                listed(nodes)
            ),
        )?;
    }
    Ok(())
}

/// Nodes by their numbers.
fn listed(nodes: &[usize]) -> String {
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    let numbers: Vec<String> = nodes.iter().map(usize::to_string).collect();
    format!("{word} {}", numbers.join(", "))
}

/// Says how near runs come to what a search reached, and to their bound: means over those of a
/// point.
fn print_reachable(plan: &Plan, results: &[RunResult], out: Out) -> Result<(), Error> {
    for (number, point) in plan.points.iter().enumerate() {
        let of_point = results.iter().filter(|run| run.point == number);
        let searched: Vec<[f64; 3]> = of_point
            .filter_map(|run| Some([run.goodput_kbps(), run.reachable_kbps?, run.bound_kbps?]))
            .collect();
        if searched.is_empty() {
            continue;
        }
        let mean = |at: usize| {
            let sum: f64 = searched.iter().map(|figures| figures[at]).sum();
            sum / searched.len() as f64
        };
        let [goodput, reachable, bound] = [0, 1, 2].map(mean);
        let values = point.values.iter();
        let named: String = values
            .map(|(key, value)| format!("{key} = {value}: "))
            .collect();
        output::line_to(
            out,
            format_args!(
                "{BOLD}reachable{BOLD:#}: {named}{reachable:.1} kb/s with the best pace and window of a search; this \
                 was {goodput:.1}, and nothing exceeds {bound:.1}"
            ),
        )?;
    }
    Ok(())
}

/// Prints a line for each, the worst first.
pub(super) fn print(plan: &Plan, results: &[RunResult], out: Out) -> Result<(), Error> {
    let cut = |run: &&RunResult| !run.complete && run.trouble().is_none();
    let missing = plan.runs() - results.len() + results.iter().filter(cut).count();
    if missing > 0 {
        let (whole, runs) = (plan.runs() - missing, plan.runs());
        output::line_to(
            out,
            format_args!("{BAD}incomplete{BAD:#}: {whole} of {runs} runs went to their end"),
        )?;
    }
    print_failed(plan, results, out)?;
    let unfinished = flows(results, |flow| {
        flow.outcome == Outcome::Running && flow.likeness.bytes > 0
    });
    if !unfinished.is_empty() {
        let transfers = flows(results, |flow| flow.likeness.bytes > 0).len();
        output::line_to(
            out,
            format_args!(
                "{BOLD}unfinished{BOLD:#}: {} of {transfers} transfers were under way when the time was over (duration_s)",
                unfinished.len()
            ),
        )?;
    }
    print_reachable(plan, results, out)?;
    print_left_out(plan, out)?;
    let lost = short_of_memory(results);
    if lost > 0 {
        output::line_to(
            out,
            format_args!(
                "{BOLD}short of memory{BOLD:#}: nodes gave up {lost} packets half put together, or could not begin them"
            ),
        )?;
    }
    let silent = flows(results, |flow| {
        flow.bytes == 0 && !flow.outcome.is_failure()
    });
    if let Some((seed, first)) = silent.first() {
        let name = first.name();
        output::line_to(
            out,
            format_args!(
                "{BOLD}silent{BOLD:#}: flows that delivered nothing: {}, the first with seed {seed}: {name}",
                silent.len()
            ),
        )?;
    }
    Ok(())
}

/// The runs and flows that failed, and what repeats the first run.
fn print_failed(plan: &Plan, results: &[RunResult], out: Out) -> Result<(), Error> {
    for run in results
        .iter()
        .filter(|run| run.failure.is_some())
        .take(SHOWN)
    {
        let why = run.failure.as_deref().unwrap_or_default();
        output::line_to(
            out,
            format_args!("{BAD}failed{BAD:#}: seed {}: {why}", run.seed),
        )?;
    }
    let failed = flows(results, |flow| flow.outcome.is_failure());
    for (seed, flow) in failed.iter().take(SHOWN) {
        let (name, what) = (flow.name(), flow.outcome.sentence());
        output::line_to(
            out,
            format_args!("{BAD}failed{BAD:#}: seed {seed}: {name} {what}"),
        )?;
    }
    let first = results.iter().find(|run| run.trouble().is_some());
    if let Some(run) = first.filter(|_| plan.runs() > 1) {
        let options = plan.repeats(run.seed);
        output::line_to(
            out,
            format_args!("the first of these runs alone: {options}"),
        )?;
    }
    if failed.len() > SHOWN {
        let more = failed.len() - SHOWN;
        output::line_to(out, format_args!("{BAD}failed{BAD:#}: {more} more flows"))?;
    }
    Ok(())
}

/// Packets that nodes gave up, or refused, because others needed the memory.
fn short_of_memory(results: &[RunResult]) -> u64 {
    let reasons = ["fragments: evicted", "fragments: no memory"];
    let nodes = results.iter().flat_map(|run| &run.nodes);
    let drops = nodes.flat_map(|node| DROPS.iter().zip(node.counts.drops));
    let lost = drops.filter(|(drop, _)| reasons.contains(drop));
    lost.map(|(_, count)| count).sum()
}

/// The flows of which `is_it` holds, with the seed of their run.
fn flows(results: &[RunResult], is_it: fn(&FlowResult) -> bool) -> Vec<(u64, &FlowResult)> {
    let flows = results
        .iter()
        .flat_map(|run| run.flows.iter().map(|flow| (run.seed, flow)));
    flows.filter(|(_, flow)| is_it(flow)).collect()
}

/// Flows that a remark names at most.
const SHOWN: usize = 5;
