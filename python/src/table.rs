//! A table, as every library takes it that knows Arrow's PyCapsule interface.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// Name of a column's unit in its field's metadata.
pub(crate) const UNIT: &str = "unit";

/// Tables by their names.
pub(crate) type Tables = BTreeMap<&'static str, Table>;

/// See the module. Documentation for users is in `_native.pyi`.
#[pyclass(frozen, module = "onramp")]
#[derive(Clone)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer that cannot cast gives what it has, and its consumer casts.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, SchemaRef::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        format!("<onramp.Table of {} rows: {}>", self.rows(), self.columns().join(", "))
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn units(&self) -> BTreeMap<String, String> {
        let unit = |field: &Field| Some((field.name().clone(), field.metadata().get(UNIT)?.clone()));
        self.schema.fields().iter().filter_map(|field| unit(field)).collect()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let none = || {
            let names = self.columns().join(", ");
            PyKeyError::new_err(format!("there is no column {name:?}; there are {names}"))
        };
        let (at, _) = self.schema.column_with_name(name).ok_or_else(none)?;
        let values = PyList::empty(py);
        for array in self.batches.iter().map(|batch| batch.column(at)) {
            for row in 0..array.len() {
                values.append(value(py, array, row)?)?;
            }
        }
        Ok(values)
    }

    fn to_arrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }
}

/// One value as Python has it; of the types that tables here have.
fn value(py: Python<'_>, array: &dyn Array, row: usize) -> PyResult<Py<PyAny>> {
    if array.is_null(row) {
        return Ok(py.None());
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into_py_any(py),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into_py_any(py),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into_py_any(py),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into_py_any(py),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_py_any(py),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_py_any(py),
        _ => Ok(py.None()),
    }
}

/// The unit that a name ends in; none: it is a bare number, a name or a text.
pub(crate) fn unit_of(name: &str) -> Option<&'static str> {
    const UNITS: [(&str, &str); 9] = [
        ("bytes_per_s", "bytes/s"),
        ("bps", "bit/s"),
        ("bytes", "bytes"),
        ("segments", "segments"),
        ("seconds", "s"),
        ("ms", "ms"),
        ("us", "us"),
        ("ns", "ns"),
        ("pct", "%"),
    ];
    let ends =
        |unit: &str| name.strip_suffix(unit).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
    UNITS.iter().find(|(unit, _)| ends(unit)).map(|(_, unit)| *unit)
}
