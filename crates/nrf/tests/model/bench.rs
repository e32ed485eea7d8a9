//! The model with a driver, and the interrupt between them.

use motet_nrf::{Driver, Frames};

use super::Model;

/// A driver, its model, and the processor between them.
pub(crate) struct Bench {
    pub(crate) model: Model,
    pub(crate) driver: Driver<Model>,
    /// From an event to the interrupt's first line, µs.
    pub(crate) latency: u64,
    /// Interrupts that are lost, from now on.
    pub(crate) lost: u32,
    raised_at: Option<u64>,
}

impl Bench {
    pub(crate) fn new(offset: u32) -> Self {
        Self::over(Box::leak(Box::new(Frames::new())), offset)
    }

    /// With this memory, which no other driver works in.
    pub(crate) fn over(frames: &'static Frames, offset: u32) -> Self {
        Self::of(Model::new(offset), frames)
    }

    /// With this model.
    ///
    /// # Panics
    /// It has no crystal.
    pub(crate) fn of(model: Model, frames: &'static Frames) -> Self {
        Self {
            driver: Driver::new(model.clone(), frames).expect("the model has its crystal"),
            model,
            latency: 2,
            lost: 0,
            raised_at: None,
        }
    }

    /// Lets time pass.
    ///
    /// # Panics
    /// The driver has done what no driver may do.
    pub(crate) fn run(&mut self, span_us: u64) {
        self.pass(span_us);
        assert_eq!(self.model.faults(), [""; 0]);
    }

    fn pass(&mut self, span_us: u64) {
        for _ in 0..span_us {
            self.model.step();
            if !self.model.is_interrupting() {
                self.raised_at = None;
                continue;
            }
            let now = self.model.now();
            let raised_at = *self.raised_at.get_or_insert(now);
            if now >= raised_at + self.latency && self.lost != LOST {
                self.raised_at = None;
                match self.lost {
                    0 => {
                        self.driver.on_interrupt();
                    }
                    // It does not come until something else raises the line, which it cannot.
                    _ => self.lost = LOST,
                }
            }
        }
    }

    /// The interrupt line works again.
    pub(crate) fn mend(&mut self) {
        self.lost = 0;
        self.raised_at = None;
    }
}

const LOST: u32 = u32::MAX;
