//! Tables by column, handed on through Arrow's C data interface.
//!
//! Source: the Arrow PyCapsule interface, <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use motet_lab::report::{self, Column, Values};
use pyo3::exceptions::{PyKeyError, PyModuleNotFoundError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};

use crate::scenario::shown;

/// A table by column.
#[pyclass(frozen, module = "motet")]
#[derive(Debug)]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// The same columns, as Arrow has them; `origin` says where they come from, in JSON.
    pub(crate) fn of(table: report::Table, origin: Option<&str>) -> PyResult<Self> {
        batch(table, origin)
            .map(Self)
            .map_err(|error| failed(&error))
    }

    /// Where it comes from, in JSON.
    fn origin(&self) -> Option<String> {
        self.0.schema_ref().metadata().get(ORIGIN).cloned()
    }

    pub(crate) fn again(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Table {
    /// The first rows as a table of HTML.
    pub(crate) fn html(&self, py: Python<'_>) -> PyResult<String> {
        let (columns, rows) = (self.columns(), self.0.num_rows());
        let mut text = String::from("<table><thead><tr>");
        for name in &columns {
            text += &format!("<th>{}</th>", report::escape(name));
        }
        text += "</tr></thead><tbody>";
        let shown = self.0.slice(0, rows.min(ROWS_SHOWN));
        let lists = shown.columns().iter().map(|column| list(py, column));
        let lists = lists.collect::<PyResult<Vec<_>>>()?;
        for row in 0..shown.num_rows() {
            text += "<tr>";
            for column in &lists {
                let value = column.get_item(row)?;
                let value = match value.is_none() {
                    true => String::new(),
                    false => value.str()?.to_string(),
                };
                text += &format!("<td>{}</td>", report::escape(&value));
            }
            text += "</tr>";
        }
        text += "</tbody></table>";
        if rows > ROWS_SHOWN {
            text += &format!("<p>{rows} rows in all</p>");
        }
        Ok(text)
    }
}

#[pymethods]
impl Table {
    /// The first rows as a table of a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.html(py)
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.0.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// Where it comes from: version, revision, date, seeds, scenario. Arrow has it in the schema's metadata.
    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.origin().map(|text| json(py, &text)).transpose()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.columns())?.try_iter()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        let name: Option<String> = name.extract().ok();
        name.is_some_and(|name| self.0.column_by_name(&name).is_some())
    }

    /// The names of the columns, as a dict has them.
    fn keys(&self) -> Vec<String> {
        self.columns()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.0.num_rows(), self.columns().join(", "));
        format!("<motet.Table of {rows} rows: {columns}>")
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let text: Option<String> = name.extract().ok();
        let column = text.and_then(|name| self.0.column_by_name(&name));
        let column = column.ok_or_else(|| {
            let (name, columns) = (shown(name), self.columns().join(", "));
            PyKeyError::new_err(format!("there is no column {name}, only {columns}"))
        })?;
        list(py, column)
    }

    /// All columns, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.columns().iter().zip(self.0.columns()) {
            dict.set_item(name, list(py, column)?)?;
        }
        Ok(dict)
    }

    /// The columns as lists, with what they are of: tables go between processes without Arrow.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Packed<'py>)> {
        let restore = py.import("motet._motet")?.getattr("restore_table")?;
        let columns = self.0.columns().iter().zip(self.columns());
        let columns = columns.map(|(column, name)| {
            let kind = match column.data_type() {
                DataType::UInt64 => WHOLE,
                DataType::Float64 => REAL,
                DataType::Boolean => FLAG,
                _ => TEXT,
            };
            Ok((name, kind, list(py, column)?))
        });
        Ok((
            restore,
            (
                self.0.num_rows(),
                columns.collect::<PyResult<_>>()?,
                self.origin(),
            ),
        ))
    }

    /// The same for pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package(slf.py(), "to_arrow", "pyarrow", "arrow")?.call_method1("table", (slf,))
    }

    /// The same for polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package(slf.py(), "to_polars", "polars", "polars")?.call_method1("DataFrame", (slf,))
    }

    /// The same for pandas.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pandas = package(slf.py(), "to_pandas", "pandas", "pandas")?;
        let frame = if slf.py().import("pyarrow").is_err() {
            let columns = slf.get().to_dict(slf.py())?;
            pandas.call_method1("DataFrame", (columns,))?
        } else {
            // A block a column: numbers without gaps stay where they are.
            let how = PyDict::new(slf.py());
            how.set_item("split_blocks", true)?;
            Self::to_arrow(slf)?.call_method("to_pandas", (), Some(&how))?
        };
        if let Some(provenance) = slf.get().provenance(slf.py())? {
            frame.getattr("attrs")?.set_item(ORIGIN, provenance)?;
        }
        Ok(frame)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref());
        let schema = schema.map_err(|error| failed(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for another schema may get this one: the interface says so.
        let _ = requested_schema;
        let batches = vec![Ok(self.0.clone())];
        let reader = RecordBatchIterator::new(batches, self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The package that a method hands the table to.
fn package<'py>(
    py: Python<'py>,
    method: &str,
    name: &str,
    extra: &str,
) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        if !error.is_instance_of::<PyModuleNotFoundError>(py) {
            return error;
        }
        PyModuleNotFoundError::new_err(format!("{method} needs {name}: pip install motet[{extra}]"))
    })
}

/// What [`restore_table`] takes: how many rows there are; of each column its name, what it has, and its values; where
/// all comes from.
type Packed<'py> = (
    usize,
    Vec<(String, &'static str, Bound<'py, PyList>)>,
    Option<String>,
);

/// What a text in JSON says.
pub(crate) fn json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// A table that was pickled.
#[pyfunction]
#[pyo3(signature = (rows, columns, origin = None))]
pub(crate) fn restore_table(
    rows: usize,
    columns: Vec<(String, String, Bound<'_, PyList>)>,
    origin: Option<&str>,
) -> PyResult<Table> {
    let columns = columns.into_iter().map(|(name, kind, list)| {
        let values = match &kind[..] {
            WHOLE => Values::Whole(list.extract()?),
            REAL => Values::Real(list.extract()?),
            FLAG => Values::Flag(list.extract()?),
            _ => Values::Text(list.extract()?),
        };
        Ok(Column { name, values })
    });
    let columns = columns.collect::<PyResult<_>>()?;
    Table::of(report::Table { rows, columns }, origin)
}

fn batch(table: report::Table, origin: Option<&str>) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
    for column in table.columns {
        let array: ArrayRef = match column.values {
            Values::Whole(all) => Arc::new(UInt64Array::from(all)),
            Values::Real(all) => Arc::new(Float64Array::from(all)),
            Values::Flag(all) => Arc::new(BooleanArray::from(all)),
            Values::Text(all) => Arc::new(StringArray::from(all)),
        };
        fields.push(Field::new(column.name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows));
    let origin = origin.map(|origin| (ORIGIN.to_owned(), origin.to_owned()));
    let metadata: HashMap<String, String> = origin.into_iter().collect();
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)
}

fn list<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let any = column.as_any();
    match column.data_type() {
        DataType::UInt64 => match any.downcast_ref::<UInt64Array>() {
            Some(array) => PyList::new(py, array.iter().collect::<Vec<_>>()),
            None => Ok(PyList::empty(py)),
        },
        DataType::Float64 => match any.downcast_ref::<Float64Array>() {
            Some(array) => PyList::new(py, array.iter().collect::<Vec<_>>()),
            None => Ok(PyList::empty(py)),
        },
        DataType::Boolean => match any.downcast_ref::<BooleanArray>() {
            Some(array) => PyList::new(py, array.iter().collect::<Vec<_>>()),
            None => Ok(PyList::empty(py)),
        },
        _ => match any.downcast_ref::<StringArray>() {
            Some(array) => PyList::new(py, array.iter().collect::<Vec<_>>()),
            None => Ok(PyList::empty(py)),
        },
    }
}

fn failed(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// The key of a table's origin, in Arrow's metadata and among the attributes of pandas.
const ORIGIN: &str = "motet";

const WHOLE: &str = "whole";
const REAL: &str = "real";
const FLAG: &str = "flag";
const TEXT: &str = "text";

/// Rows that a notebook shows.
const ROWS_SHOWN: usize = 20;
