//! A tool's report about a call whose outcome a crash hid.

use super::{ToolContext, ToolFailure};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// The outcome of a call that may or may not have taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconciled {
    /// It took effect with this result; it does not run again.
    Happened(Value),
    /// It did not take effect; it runs.
    DidNotHappen,
    /// The outcome can't be determined; the model gets an interrupted result.
    Unknown,
}

/// Finds out what became of a call. Dropping the future cancels it.
pub trait Reconcile: Send + Sync {
    /// Checks whether the call with these arguments took effect. The context has the idempotency key of
    /// the call. A failure counts as [`Reconciled::Unknown`].
    fn reconcile(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<Reconciled, ToolFailure>>;
}

impl<F> Reconcile for F
where
    F: Fn(Value, ToolContext) -> BoxFuture<'static, Result<Reconciled, ToolFailure>> + Send + Sync,
{
    fn reconcile(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<Reconciled, ToolFailure>> {
        self(arguments, context)
    }
}
