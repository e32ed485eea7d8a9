//! Files that appear under their name only when whole.

use std::io::{self, Write};
use std::path::Path;

use super::figures::NAMES;
use super::sweeps::SWEPT;
use crate::experiments;
use crate::files::NewFile;

/// Whether a file of this name is a plot of [`super::plots`] or [`super::criteria_plots`].
pub fn is_plot(name: &str) -> bool {
    let Some(name) = name.strip_suffix(".svg") else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(metric) = name.strip_prefix("sweep-") {
        return SWEPT.iter().any(|(name, ..)| *name == metric);
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

/// Writes `bytes` to a file called `path`.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::keep`]; nothing stays behind then.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    let mut file = NewFile::create(path, replace)?;
    file.write_all(bytes)?;
    file.keep(replace)
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

    #[test]
    fn nothing_is_overwritten_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_file(&path, b"one", false).unwrap();
        let refused = write_file(&path, b"two", false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        write_file(&path, b"two", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
