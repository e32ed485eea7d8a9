//! Which files are plots: a folder that is written anew loses the old ones.

use super::figures::NAMES;
use super::sweeps::{SHARES, SWEPT};
use crate::experiments;

/// Whether a file of this name is a plot of [`super::plots`] or [`super::criteria_plots`].
pub fn is_plot(name: &str) -> bool {
    let Some(name) = name.strip_suffix(".svg") else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(metric) = name.strip_prefix("sweep-") {
        return metric == SHARES || SWEPT.iter().any(|(name, ..)| *name == metric);
    }
    if let Some((point, figure)) = name.strip_prefix("point-").and_then(|n| n.split_once('-')) {
        return is_number(point) && NAMES.contains(&figure);
    }
    let of_experiment = |(id, number)| {
        let mut all = experiments::all().into_iter();
        is_number(number) && all.any(|experiment| experiment.id == id)
    };
    NAMES.contains(&name) || name.rsplit_once('-').is_some_and(of_experiment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_are_known_by_their_names() {
        let ours = [
            "rtt.svg",
            "point-12-energy.svg",
            "sweep-total_goodput.svg",
            "sweep-shares.svg",
            "tcplp-hops-1.svg",
        ];
        assert!(ours.iter().all(|name| is_plot(name)));
        let theirs = [
            "drawing.svg",
            "point-x-rtt.svg",
            "point-1-notes.svg",
            "tcplp-hops.svg",
            "mine-1.svg",
            "sweep-sketch.svg",
            "rtt.png",
        ];
        assert!(!theirs.iter().any(|name| is_plot(name)));
    }
}
