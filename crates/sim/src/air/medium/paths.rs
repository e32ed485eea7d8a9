//! Who hears a transmitter, packed: a large mesh has millions of paths.

use crate::air::power::Power;

/// All that one transmitter reaches.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Where a preamble is found without any rival; ascending.
    pub(super) audible: Vec<Path>,
    /// Where it only interferes; ascending.
    pub(super) faint: Vec<Path>,
}

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
    /// Adds a path, or replaces it.
    pub(super) fn set(&mut self, path: Path, is_audible: bool) {
        let [list, other] = match is_audible {
            true => [&mut self.audible, &mut self.faint],
            false => [&mut self.faint, &mut self.audible],
        };
        match place(list, path.to()) {
            Ok(at) => list[at] = path,
            Err(at) => list.insert(at, path),
        }
        if let Ok(at) = place(other, path.to()) {
            other.remove(at);
        }
    }

    /// How strongly `to` hears the transmitter.
    pub(super) fn power(&self, to: usize) -> Option<Power> {
        let found = [&self.audible, &self.faint]
            .into_iter()
            .find_map(|list| list.get(place(list, to).ok()?));
        found.map(Path::power)
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
    }

    #[test]
    fn a_path_is_in_one_list() {
        let path = |to, dbm| Path::new(to, Packed::new(Power::from_dbm(dbm)));
        let mut paths = Paths::default();
        for (to, dbm, is_audible) in [(4, -60.0, true), (2, -70.0, true), (3, -110.0, false)] {
            paths.set(path(to, dbm), is_audible);
        }
        paths.set(path(2, -115.0), false);
        let tos = |list: &[Path]| list.iter().map(Path::to).collect::<Vec<_>>();
        assert_eq!(
            (tos(&paths.audible), tos(&paths.faint)),
            (vec![4], vec![2, 3])
        );
        let dbm = paths.power(2).unwrap().dbm();
        assert!(
            (dbm + 115.0).abs() < 0.01 && paths.power(7).is_none(),
            "{dbm}"
        );
    }
}
