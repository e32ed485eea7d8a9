//! The paths from each transmitter to its listeners, packed: a large mesh has millions of them.

use crate::air::power::Power;

/// All that one transmitter reaches.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Where a preamble is found without any rival; ascending.
    pub(super) audible: Vec<Path>,
    /// Receivers at which the signal only interferes.
    pub(super) faint: Faint,
}

/// Where a transmitter only interferes; ascending.
///
/// These are nearly all paths, each frame reads its sender's twice, and among thousands of senders
/// they are in no cache: so they take four bytes each where all fit.
#[derive(Debug)]
pub(super) enum Faint {
    Steps(Vec<Step>),
    Paths(Vec<Path>),
}

/// One receiver: how many places beyond the one before, in 12 bits, and attowatts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step(u32);

/// One receiver, and how strongly it hears the transmitter: eight bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    to: u32,
    power: Packed,
}

/// A power in 26 bits and a power of two: to one part in 30 million, and always the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Packed(u32);

impl Paths {
    /// Paths to these receivers, both in ascending order.
    pub(super) fn new(mut audible: Vec<Path>, faint: Vec<Path>) -> Self {
        audible.shrink_to_fit();
        let faint = Faint::new(faint);
        Self { audible, faint }
    }

    /// Adds a path, or replaces it.
    pub(super) fn set(&mut self, path: Path, is_audible: bool) {
        let mut faint = self.faint.to_paths();
        let [list, other] = match is_audible {
            true => [&mut self.audible, &mut faint],
            false => [&mut faint, &mut self.audible],
        };
        match place(list, path.to()) {
            Ok(at) => list[at] = path,
            Err(at) => list.insert(at, path),
        }
        if let Ok(at) = place(other, path.to()) {
            other.remove(at);
        }
        self.faint = Faint::new(faint);
    }

    /// Whether the transmitter only interferes at `to`.
    pub(super) fn is_faint_to(&self, to: usize) -> bool {
        place(&self.audible, to).is_err() && self.faint.power(to).is_some()
    }

    /// How strongly `to` hears the transmitter.
    pub(super) fn power(&self, to: usize) -> Option<Power> {
        let audible = place(&self.audible, to).ok();
        let audible = audible.and_then(|at| self.audible.get(at));
        audible.map(Path::power).or_else(|| self.faint.power(to))
    }
}

impl Faint {
    fn new(mut paths: Vec<Path>) -> Self {
        let mut before = 0;
        let step = |path: &Path| Step::new(std::mem::replace(&mut before, path.to()), path);
        if let Some(steps) = paths.iter().map(step).collect::<Option<Vec<_>>>() {
            return Self::Steps(steps);
        }
        paths.shrink_to_fit();
        Self::Paths(paths)
    }

    /// Shows each path, in ascending order.
    #[inline]
    pub(super) fn each(&self, mut show: impl FnMut(usize, Power)) {
        match self {
            Self::Steps(steps) => {
                let mut to = 0;
                for step in steps {
                    to += step.width();
                    show(to, step.power());
                }
            }
            Self::Paths(paths) => paths.iter().for_each(|path| show(path.to(), path.power())),
        }
    }

    /// How strongly `to` hears the transmitter, if that is here.
    pub(super) fn power(&self, to: usize) -> Option<Power> {
        let mut found = None;
        self.each(|other, power| found = found.or((other == to).then_some(power)));
        found
    }

    fn to_paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.each(|to, power| paths.push(Path::new(to, Packed::new(power))));
        paths
    }
}

impl Default for Faint {
    fn default() -> Self {
        Self::Steps(Vec::new())
    }
}

impl Step {
    const DIGITS: u32 = 20;

    /// The path from the receiver `before`, unless either is too much.
    fn new(before: usize, path: &Path) -> Option<Self> {
        let width = u32::try_from(path.to() - before).ok()?;
        let power = u32::try_from(path.power().attowatts()).ok()?;
        let fits = width >> (u32::BITS - Self::DIGITS) == 0 && power >> Self::DIGITS == 0;
        fits.then_some(Self(width << Self::DIGITS | power))
    }

    fn width(self) -> usize {
        (self.0 >> Self::DIGITS) as usize
    }

    fn power(self) -> Power {
        Power::from_attowatts(u64::from(self.0 & ((1 << Self::DIGITS) - 1)))
    }
}

fn place(list: &[Path], to: usize) -> Result<usize, usize> {
    list.binary_search_by_key(&to, Path::to)
}

impl Path {
    pub(super) fn new(to: usize, power: Packed) -> Self {
        // Lossless: no world has four thousand million nodes.
        let to = to as u32;
        Self { to, power }
    }

    pub(super) fn to(&self) -> usize {
        self.to as usize
    }

    pub(super) fn power(&self) -> Power {
        self.power.power()
    }
}

impl Packed {
    /// More than any power in the air.
    pub(super) const MAX: Self = Self(((u64::BITS - Self::DIGITS + 1) << Self::DIGITS) - 1);

    const DIGITS: u32 = 26;

    pub(super) fn new(power: Power) -> Self {
        let attowatts = power.attowatts();
        let exponent = (u64::BITS - attowatts.leading_zeros()).saturating_sub(Self::DIGITS);
        Self(exponent << Self::DIGITS | (attowatts >> exponent) as u32)
    }

    pub(super) fn power(self) -> Power {
        let digits = u64::from(self.0 & ((1 << Self::DIGITS) - 1));
        Power::from_attowatts(digits << (self.0 >> Self::DIGITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_keep_seven_digits() {
        for dbm in [-160.0, -121.0, -101.4, -87.3, -40.0, 0.0, 40.0] {
            let power = Power::from_dbm(dbm);
            let packed = Packed::new(power).power();
            let error = power.attowatts() - packed.attowatts();
            assert!(
                error <= power.attowatts() >> 25,
                "{dbm} dBm: {error} aW off"
            );
        }
        assert_eq!(Packed::default().power(), Power::ZERO);
        assert_eq!(Packed::MAX, Packed::new(Power::from_attowatts(u64::MAX)));
    }

    fn path(to: usize, dbm: f64) -> Path {
        Path::new(to, Packed::new(Power::from_dbm(dbm)))
    }

    #[test]
    fn a_path_is_in_one_list() {
        let mut paths = Paths::default();
        for (to, dbm, is_audible) in [(4, -60.0, true), (2, -70.0, true), (3, -110.0, false)] {
            paths.set(path(to, dbm), is_audible);
        }
        paths.set(path(2, -115.0), false);
        let tos = |list: &[Path]| list.iter().map(Path::to).collect::<Vec<_>>();
        assert_eq!(
            (tos(&paths.audible), tos(&paths.faint.to_paths())),
            (vec![4], vec![2, 3])
        );
        let dbm = paths.power(2).unwrap().dbm();
        assert!(
            (dbm + 115.0).abs() < 0.01 && paths.power(7).is_none(),
            "{dbm}"
        );
    }

    #[test]
    fn faint_paths_are_the_same_in_either_form() {
        let near = [path(0, -104.0), path(1, -90.0), path(4_096, -120.9)];
        let far = [path(4_095, -104.0), path(8_191, -104.0)];
        let loud = [path(3, -104.0), path(4, -89.0)];
        for (paths, fit) in [(&near[..], true), (&far, false), (&loud, false)] {
            let faint = Faint::new(paths.to_vec());
            assert_eq!(matches!(faint, Faint::Steps(_)), fit, "{paths:?}");
            assert_eq!(format!("{:?}", faint.to_paths()), format!("{paths:?}"));
            for path in paths {
                assert_eq!(faint.power(path.to()), Some(path.power()));
            }
            assert_eq!(faint.power(5), None);
        }
    }
}
