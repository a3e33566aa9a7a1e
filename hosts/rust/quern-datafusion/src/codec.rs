// SPDX-License-Identifier: Apache-2.0
//! Lets plans with fragments travel, as bytes, to another process or to another copy of `DataFusion` in this one.
//!
//! Kernels do not travel. A node is sent as the plan that its fragment replaced, and the fragment is made again where
//! it arrives. In that plan the fragment's sources are holes, as `DataFusion` sends the node's children by itself.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::config::SessionConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::PhysicalPlanNode;
use prost::Message;

use crate::config::QuernConfig;
use crate::exec::QuernExec;
use crate::foreign::FeedExec;
use crate::planner::is_breaker;
use crate::rule::fragment_again;

/// What a message of this codec begins with; the messages of other codecs are left to them.
const MAGIC: &[u8] = b"quern.v1";

/// Encodes and decodes [`QuernExec`], and leaves all other nodes, functions and expressions to another codec.
#[derive(Debug)]
pub struct QuernCodec {
    inner: Arc<dyn PhysicalExtensionCodec>,
    foreign: Option<ForeignSession>,
    /// What the holes are filled with, inside of the plan of a node.
    sources: Vec<Arc<dyn ExecutionPlan>>,
}

/// A session of another copy of `DataFusion` in this process.
#[derive(Clone)]
struct ForeignSession {
    context: Arc<dyn Fn() -> Result<Arc<TaskContext>> + Send + Sync>,
}

impl fmt::Debug for ForeignSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignSession")
    }
}

/// A node, as it is sent.
#[derive(Clone, PartialEq, Message)]
struct Node {
    /// The plan that was replaced; a hole in it, if it has none.
    #[prost(message, optional, tag = "1")]
    original: Option<PhysicalPlanNode>,
    /// The number of a hole's source.
    #[prost(uint32, tag = "2")]
    source: u32,
    /// What the planner has to know of each source, which may be of a type that it does not know where it arrives.
    #[prost(bool, repeated, tag = "3")]
    is_breaker: Vec<bool>,
    /// Whether the fragment divides the rows of a source among partitions by itself.
    #[prost(bool, repeated, tag = "4")]
    is_divided: Vec<bool>,
    /// The node is what feeds a fragment with the rows of its child.
    #[prost(bool, tag = "5")]
    is_feed: bool,
}

impl QuernCodec {
    /// A codec in front of another one, which may be `DefaultPhysicalExtensionCodec`.
    #[must_use]
    pub fn new(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self { inner, foreign: None, sources: vec![] }
    }

    /// The same codec, for nodes that are decoded here and run over plans of another copy of `DataFusion` in this
    /// process, such as that of its Python package. The function makes the context of their session, which is slow:
    /// each function of the session is made one of this copy. It is called only where decoding with the context at hand
    /// fails, such as [`aggregate_functions`].
    #[must_use]
    pub fn for_foreign_session(self, context: impl Fn() -> Result<Arc<TaskContext>> + Send + Sync + 'static) -> Self {
        Self { foreign: Some(ForeignSession { context: Arc::new(context) }), ..self }
    }
}

/// A context that has `DataFusion`'s own aggregate functions, the only ones of most fragments, and nothing else.
#[must_use]
pub fn aggregate_functions() -> Arc<TaskContext> {
    let functions = all_default_aggregate_functions();
    let context = TaskContext::new(
        None,
        "quern".to_owned(),
        SessionConfig::new(),
        HashMap::new(),
        HashMap::new(),
        functions.into_iter().map(|function| (function.name().to_owned(), function)).collect(),
        HashMap::new(),
        Arc::default(),
    );
    Arc::new(context)
}

fn append(node: &Node, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.extend_from_slice(MAGIC);
    node.encode(buffer).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// The plan that a fragment replaced, with holes for its sources, and whether each of them is divided.
fn with_holes(quern: &QuernExec) -> Result<(Arc<dyn ExecutionPlan>, Vec<bool>)> {
    let sources = quern.sources();
    let mut is_found = vec![None; sources.len()];
    let plan = Arc::clone(quern.original()).transform_down(|node| {
        let place = sources.iter().enumerate().find_map(|(number, source)| {
            let below = source.children().first().is_some_and(|below| Arc::ptr_eq(below, &node));
            let is_same = Arc::ptr_eq(source, &node);
            (is_found[number].is_none() && (is_same || below)).then_some((number, !is_same))
        });
        let Some((number, is_divided)) = place else { return Ok(Transformed::no(node)) };
        is_found[number] = Some(is_divided);
        let hole: Arc<dyn ExecutionPlan> = Arc::new(Hole { number, properties: Arc::clone(node.properties()) });
        Ok(Transformed::new(hole, true, TreeNodeRecursion::Jump))
    })?;
    let is_divided = is_found.into_iter().collect::<Option<Vec<_>>>();
    let is_divided = is_divided.ok_or_else(|| {
        DataFusionError::Internal("QuernExec cannot be sent: a source is not part of the plan that it replaced".into())
    })?;
    Ok((plan.data, is_divided))
}

impl PhysicalExtensionCodec for QuernCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(hole) = node.downcast_ref::<Hole>() {
            let source = u32::try_from(hole.number).map_err(|error| DataFusionError::External(Box::new(error)))?;
            return append(&Node { source, ..Node::default() }, buffer);
        }
        if node.is::<FeedExec>() {
            return append(&Node { is_feed: true, ..Node::default() }, buffer);
        }
        let Some(quern) = node.downcast_ref::<QuernExec>() else {
            return self.inner.try_encode(node, buffer, converter);
        };
        let (plan, is_divided) = with_holes(quern)?;
        let original = converter.execution_plan_to_proto(&plan, self)?;
        let is_breaker = quern.sources().iter().map(is_breaker).collect();
        append(&Node { original: Some(original), source: 0, is_breaker, is_divided, is_feed: false }, buffer)
    }

    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(message) = buffer.strip_prefix(MAGIC) else {
            return self.inner.try_decode(buffer, inputs, context, converter);
        };
        let node = Node::decode(message).map_err(|error| DataFusionError::External(Box::new(error)))?;
        if let (true, [source]) = (node.is_feed, inputs) {
            return Ok(Arc::new(FeedExec::new(Arc::clone(source))));
        }
        let Some(original) = &node.original else {
            let source = self.sources.get(node.source as usize).map(Arc::clone);
            return source
                .ok_or_else(|| DataFusionError::Internal(format!("no source {} of a QuernExec", node.source)));
        };
        let sources = inputs.iter().enumerate().map(|(number, input)| {
            let feed = FeedExec::below(input);
            let below = |plan: &Arc<dyn ExecutionPlan>| plan.children().first().map(|&below| Arc::clone(below));
            let source = match &feed {
                Some(feed) => below(feed),
                None => Some(Arc::clone(input)),
            };
            let is_divided = node.is_divided.get(number) == Some(&true);
            source.as_ref().filter(|_| is_divided).and_then(below).or(source).unwrap_or_else(|| Arc::clone(input))
        });
        let filler = Self { inner: Arc::clone(&self.inner), foreign: None, sources: sources.collect() };
        let decoded = |context: &TaskContext| {
            converter.proto_to_execution_plan(original, &PhysicalPlanDecodeContext::new(context, &filler))
        };
        let original = match (decoded(context), &self.foreign) {
            (Err(_), Some(session)) => decoded((session.context)()?.as_ref())?,
            (decoded, _) => decoded?,
        };
        let settings = context.session_config().options().extensions.get::<QuernConfig>();
        let settings = settings.cloned().unwrap_or_default();
        Ok(match fragment_again(&original, &settings, &node.is_breaker) {
            Some(node) if self.foreign.is_some() => Arc::new(node.over_foreign_sources(inputs)),
            Some(node) => Arc::new(node),
            // Its tasks would poll sources of the other copy.
            None if self.foreign.is_some() => {
                return Err(DataFusionError::Internal("a fragment that cannot be made again".into()));
            }
            None => original,
        })
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.inner.try_decode_udf(name, buffer)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udf(function, buffer)
    }

    fn try_decode_higher_order_function(&self, name: &str, buffer: &[u8]) -> Result<Arc<HigherOrderUDF>> {
        self.inner.try_decode_higher_order_function(name, buffer)
    }

    fn try_encode_higher_order_function(&self, function: &HigherOrderUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_higher_order_function(function, buffer)
    }

    fn try_decode_udaf(&self, name: &str, buffer: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, buffer)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(function, buffer)
    }

    fn try_decode_udwf(&self, name: &str, buffer: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, buffer)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(function, buffer)
    }

    fn try_decode_expr(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.inner.try_decode_expr(buffer, inputs, context)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buffer: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.inner.try_encode_expr(node, buffer, context)
    }
}

/// In the plan of a node that is sent, the place of one of its sources.
#[derive(Debug)]
struct Hole {
    number: usize,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for Hole {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source {} of a QuernExec", self.number)
    }
}

impl ExecutionPlan for Hole {
    fn name(&self) -> &'static str {
        "QuernSource"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Err(DataFusionError::Internal("a source of a QuernExec is run outside of the plan that it belongs to".into()))
    }
}
