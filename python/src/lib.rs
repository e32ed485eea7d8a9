//! The lab for Python: scenarios in, tables by column out.
//!
//! Data flow: [`scenario`] makes a plan of what Python has, [`running`] and [`steps`] run it in
//! threads of their own while Python's lock is free, [`sweep`] runs points of it wherever somebody asks
//! for one, [`reproducing`] runs published experiments, [`table`] hands results on.
//! Left out: what the lab cannot do itself; no figure is made here.

mod pool;
mod reproducing;
mod running;
mod scenario;
mod steps;
mod sweep;
mod table;

use pyo3::prelude::*;

pyo3::create_exception!(
    motet,
    ScenarioError,
    pyo3::exceptions::PyValueError,
    "What is wrong with a scenario, in one sentence."
);

#[pymodule]
fn _motet(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add("REVISION", REVISION)?;
    module.add_class::<running::Plan>()?;
    module.add_class::<running::Outcome>()?;
    module.add_class::<steps::Steps>()?;
    module.add_class::<steps::Moment>()?;
    module.add_class::<sweep::Task>()?;
    module.add_class::<sweep::Stop>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(sweep::restore_result, module)?)?;
    module.add_function(wrap_pyfunction!(reproducing::reproduce, module)?)?;
    module.add_function(wrap_pyfunction!(reproducing::experiments, module)?)?;
    module.add_function(wrap_pyfunction!(table::restore_table, module)?)
}

/// What figures depend on: the commit; with a digest of the files, where those differ from it or no commit is known.
const REVISION: &str = env!("MOTET_REVISION");
