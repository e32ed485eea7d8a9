//! The published models of TCP's goodput.
//!
//! Sources: `TCPlp` §8 and appendix B; Mathis et al., CCR 1997, for the first.

/// The input of the models.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Application bytes of a full segment.
    pub mss_bytes: f64,
    /// Round-trip time, s.
    pub rtt_s: f64,
    /// Part of segments lost end to end, 0 to 1.
    pub loss: f64,
    /// The window, in segments.
    pub window: f64,
}

impl Path {
    /// `TCPlp` equation 1: goodput where loss alone limits the window, kb/s; infinite
    /// without loss.
    pub fn loss_limited_kbps(&self) -> f64 {
        self.segments_per_rtt_kbps() * (3.0 / (2.0 * self.loss)).sqrt()
    }

    /// `TCPlp` equation 2: goodput where the buffer limits the window, and each loss costs
    /// two round trips, kb/s.
    pub fn buffer_limited_kbps(&self) -> f64 {
        self.segments_per_rtt_kbps() / (1.0 / self.window + 2.0 * self.loss)
    }

    /// `TCPlp` equation 3 with the chance 1 - (1 - p)^w that a window loses a segment: what
    /// equation 2 approximates for small losses, kb/s.
    pub fn bursts_kbps(&self) -> f64 {
        let window_lost = 1.0 - libm::pow(1.0 - self.loss, self.window);
        let windows = 1.0 / window_lost;
        if windows.is_finite() {
            let recovery_s = 2.0 * self.rtt_s;
            let seconds = windows * self.rtt_s + recovery_s;
            self.window * windows * self.mss_bytes * 8.0 / seconds / 1_000.0
        } else {
            self.segments_per_rtt_kbps() * self.window
        }
    }

    fn segments_per_rtt_kbps(&self) -> f64 {
        self.mss_bytes * 8.0 / self.rtt_s / 1_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TCPlp Table 9: goodput, kb/s; loss; median RTT, ms.
    const TABLE_9: [[f64; 3]; 8] = [
        [69.6, 0.0, 213.0],
        [55.4, 0.000_439, 284.0],
        [41.7, 0.000_437, 356.0],
        [35.2, 0.002_19, 416.0],
        [19.3, 0.004_41, 772.0],
        [19.8, 0.004_36, 755.0],
        [10.9, 0.0195, 995.0],
        [9.43, 0.0300, 1075.0],
    ];

    fn path(loss: f64, rtt_ms: f64) -> Path {
        Path {
            mss_bytes: 462.0,
            rtt_s: rtt_ms / 1_000.0,
            loss,
            window: 4.0,
        }
    }

    #[test]
    fn the_second_equation_meets_the_published_table() {
        for [goodput, loss, rtt] in TABLE_9 {
            let error = path(loss, rtt).buffer_limited_kbps() / goodput - 1.0;
            assert!(
                (-0.065..=0.185).contains(&error),
                "{goodput} kb/s: {:.1} %",
                error * 100.0
            );
        }
    }

    #[test]
    fn the_first_equation_exceeds_it_where_losses_are_few() {
        for [_, loss, rtt] in TABLE_9 {
            let path = path(loss, rtt);
            assert!(path.loss_limited_kbps() > 1.5 * path.buffer_limited_kbps());
        }
        assert_eq!(path(0.0, 200.0).loss_limited_kbps(), f64::INFINITY);
    }

    #[test]
    fn the_third_becomes_the_second_as_losses_vanish() {
        let full = path(0.0, 200.0);
        assert_eq!(full.bursts_kbps(), full.buffer_limited_kbps());
        let few = path(1e-4, 200.0);
        assert!((few.bursts_kbps() / few.buffer_limited_kbps() - 1.0).abs() < 1e-4);
        let many = path(0.1, 200.0);
        assert!(many.bursts_kbps() > many.buffer_limited_kbps());
    }
}
