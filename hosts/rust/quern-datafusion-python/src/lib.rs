// SPDX-License-Identifier: Apache-2.0
//! The Python module `quern_datafusion`: Quern for a session of `DataFusion`'s Python package, which has a `DataFusion`
//! of its own inside.
//!
//! ```python
//! import quern
//! from datafusion import SessionContext
//! context = SessionContext().with_extensions(quern.datafusion())
//! ```
//!
//! A plan cannot be handed from one copy of `DataFusion` to another as it is: its nodes would be of foreign types. So
//! the session's planner is called from here, its plan comes as bytes, fragments are replaced, and the plan goes back
//! as bytes. A fragment that arrives there is decoded by this module, over sources that belong to the session.
//!
//! A fragment that fails is an error: the session's scans cannot be told from here to begin again.

use std::ffi::CStr;
use std::sync::{Arc, LazyLock};

use ::quern_datafusion::{QuernCodec, QuernConfig, aggregate_functions, replace_foreign_fragments};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{TaskContext, TaskContextProvider};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_ffi::execution::FFI_TaskContextProvider;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::proto::physical_extension_codec::FFI_PhysicalExtensionCodec;
use datafusion_ffi::query_planner::FFI_QueryPlanner;
use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tokio::runtime::Runtime;

/// Where tasks of fragments run. The session's own runtime belongs to the other copy of tokio.
static RUNTIME: LazyLock<std::io::Result<Runtime>> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().thread_name("quern-datafusion").enable_all().build());

/// Where fragments are decoded, unless they need functions of the session.
static OWN_CONTEXT: LazyLock<Arc<Own>> = LazyLock::new(|| Arc::new(Own(aggregate_functions())));

struct Own(Arc<TaskContext>);

impl TaskContextProvider for Own {
    fn task_ctx(&self) -> Arc<TaskContext> {
        Arc::clone(&self.0)
    }
}

fn runtime() -> PyResult<&'static Runtime> {
    RUNTIME.as_ref().map_err(|error| PyRuntimeError::new_err(format!("no threads for fragments: {error}")))
}

const PLANNER: &CStr = c"datafusion_query_planner";
const PHYSICAL_CODEC: &CStr = c"datafusion_physical_extension_codec";
const LOGICAL_CODEC: &CStr = c"datafusion_logical_extension_codec";
const CONTEXT_PROVIDER: &CStr = c"datafusion_task_context_provider";

/// A copy of what a capsule holds.
///
/// # Safety
///
/// A capsule of this name holds a `T` of the same major version of `DataFusion`.
unsafe fn held<T: Clone>(object: &Bound<'_, PyAny>, name: &CStr) -> PyResult<T> {
    let pointer = object.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: the caller's promise; the capsule lives for as long as the reference to it.
    Ok(unsafe { pointer.as_ref() }.clone())
}

/// Plans as another planner does, and then replaces fragments.
#[derive(Debug)]
struct Planner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
    settings: QuernConfig,
}

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.inner.create_physical_plan(logical_plan, session).await?;
        replace_foreign_fragments(&plan, &self.settings, session.config_options())
    }
}

/// The codec of one session.
#[pyclass(frozen, module = "quern_datafusion")]
struct Codec;

#[pymethods]
#[expect(clippy::unused_self, reason = "DataFusion calls methods of an object")]
impl Codec {
    #[getter]
    fn __datafusion_codec_id__(&self) -> &'static str {
        "quern.v1"
    }

    fn __datafusion_physical_extension_codec__<'py>(
        &self,
        py: Python<'py>,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let provider = session.call_method0("__datafusion_task_context_provider__")?;
        // SAFETY: DataFusion's package gives its capsules these names.
        let provider: FFI_TaskContextProvider = unsafe { held(&provider, CONTEXT_PROVIDER) }?;
        let codec = QuernCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}))
            .for_foreign_session(move || Arc::try_from(&provider));
        let own: Arc<dyn TaskContextProvider> = OWN_CONTEXT.clone();
        let codec = FFI_PhysicalExtensionCodec::new(Arc::new(codec), Some(runtime()?.handle().clone()), &own);
        PyCapsule::new_with_value(py, codec, PHYSICAL_CODEC)
    }
}

/// What `SessionContext.with_extensions` takes.
#[pyclass(frozen, module = "quern_datafusion")]
struct Extension {
    settings: QuernConfig,
}

#[pymethods]
impl Extension {
    /// Settings are those of `quern.*` in a session of Rust.
    #[new]
    #[pyo3(signature = (*, joins = true, aggregates = true, sorts = true))]
    fn new(joins: bool, aggregates: bool, sorts: bool) -> Self {
        let mut settings = QuernConfig::default();
        (settings.joins, settings.aggregates) = (joins, aggregates);
        settings.sorts = sorts;
        Self { settings }
    }

    #[expect(clippy::unused_self, reason = "DataFusion calls a method")]
    fn __datafusion_session_components__<'py>(
        &self,
        py: Python<'py>,
        _context: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyDict::new(py);
        arguments.set_item("physical_extension_codecs", (Py::new(py, Codec)?,))?;
        py.import("datafusion")?.getattr("SessionExtensionComponents")?.call((), Some(&arguments))
    }

    fn __datafusion_session_planner__<'py>(
        &self,
        py: Python<'py>,
        context: &Bound<'py, PyAny>,
        fallback: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let logical = context.call_method1("__datafusion_logical_extension_codec__", (context,))?;
        let physical = context.call_method1("__datafusion_physical_extension_codec__", (context,))?;
        // SAFETY: DataFusion's package gives its capsules these names; the planner's version is looked at below, before
        // anything of it is called.
        let (inner, logical, physical) = unsafe {
            (
                held::<FFI_QueryPlanner>(fallback, PLANNER)?,
                held::<FFI_LogicalExtensionCodec>(&logical, LOGICAL_CODEC)?,
                held::<FFI_PhysicalExtensionCodec>(&physical, PHYSICAL_CODEC)?,
            )
        };
        // SAFETY: a function without arguments.
        let (theirs, ours) = (unsafe { (inner.version)() }, datafusion_ffi::version());
        if theirs != ours {
            return Err(PyValueError::new_err(format!("the package datafusion is version {theirs}; accepted: {ours}")));
        }
        let planner = Planner { inner: (&inner).into(), settings: self.settings.clone() };
        let planner = FFI_QueryPlanner::new_with_ffi_codecs(Arc::new(planner), logical, physical);
        PyCapsule::new_with_value(py, planner, PLANNER)
    }
}

#[pymodule]
fn quern_datafusion(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Extension>()
}
