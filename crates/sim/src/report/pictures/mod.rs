//! Plots of results, and the pages that show them.

mod criteria;
mod faults;
mod figures;
mod grouped;
mod html;
mod map;
mod names;
mod page;
mod plot;
mod sweeps;
mod theme;

pub use criteria::{criteria_page, criteria_plots};
pub use names::is_plot;
pub use page::{page, plots};
pub use theme::escape;
