//! Tools of every effect, and the world they change.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use upp::{Effect, Reconciled, Tool, ToolContext, ToolFailure, ToolOutput};

/// What tools have done, over all crashes.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<Done>>);

#[derive(Default)]
struct Done {
    /// How often each call of each tool took effect.
    n_runs: BTreeMap<(String, String), usize>,
    /// The keys that each call was run with.
    keys: BTreeMap<String, BTreeSet<String>>,
    /// Whether a tool that can be asked says that it does not know.
    is_blind: bool,
}

impl World {
    pub(crate) fn blind(&self) {
        self.0.lock().unwrap().is_blind = true;
    }

    pub(crate) fn n_runs(&self, tool: &str, call: &str) -> usize {
        let done = self.0.lock().unwrap();
        let key = (tool.to_owned(), call.to_owned());
        done.n_runs.get(&key).copied().unwrap_or_default()
    }

    /// No effect twice, and one key for each call, however often it ran.
    pub(crate) fn check(&self, about: &str) {
        let done = self.0.lock().unwrap();
        for ((tool, call), n) in &done.n_runs {
            let may_repeat = matches!(tool.as_str(), "pure" | "idempotent");
            assert!(
                *n == 1 || may_repeat,
                "{about}: {tool} {call} ran {n} times"
            );
        }
        for (call, keys) in &done.keys {
            assert_eq!(keys.len(), 1, "{about}: {call} has keys {keys:?}");
        }
    }

    fn ran(&self, tool: &str, context: &ToolContext) {
        let mut done = self.0.lock().unwrap();
        let call = context.tool_call_id.to_string();
        let keys = done.keys.entry(call.clone()).or_default();
        keys.insert(context.idempotency_key.to_string());
        *done.n_runs.entry((tool.to_owned(), call)).or_default() += 1;
    }

    fn has(&self, tool: &str, context: &ToolContext) -> Reconciled {
        if self.0.lock().unwrap().is_blind {
            return Reconciled::Unknown;
        }
        match self.n_runs(tool, context.tool_call_id.as_str()) {
            0 => Reconciled::DidNotHappen,
            _ => Reconciled::Happened(value(tool, context)),
        }
    }
}

fn value(tool: &str, context: &ToolContext) -> Value {
    json!({ "by": tool, "call": context.tool_call_id })
}

/// A tool that takes effect at its start, and lets others go on before it ends.
pub(crate) fn working(name: &'static str, effect: Effect, world: &World) -> Tool {
    let world = world.clone();
    let run = move |arguments: Value, context: ToolContext| -> BoxFuture<'static, ToolOutput> {
        let world = world.clone();
        async move {
            world.ran(name, &context);
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            let mut value = value(name, &context);
            if let Some(edited) = arguments.get("edited") {
                value["edited"] = edited.clone();
            }
            Ok(value)
        }
        .boxed()
    };
    Tool::new(name, "Works.", json!({"type": "object"}), run).with_effect(effect)
}

pub(crate) fn reconcilable(world: &World) -> Tool {
    let asked = world.clone();
    let reconcile = move |_: Value,
                          context: ToolContext|
          -> BoxFuture<'static, Result<Reconciled, ToolFailure>> {
        let known = asked.has("reconcilable", &context);
        std::future::ready(Ok(known)).boxed()
    };
    working("reconcilable", Effect::Reconcilable, world).with_reconcile(reconcile)
}

pub(crate) fn approved(world: &World) -> Tool {
    let schema = json!({"type": "object", "properties": {"edited": {"type": "string"}}});
    Tool {
        parameters: Arc::new(schema),
        ..working("approved", Effect::Effect, world).with_requires_approval()
    }
}

pub(crate) fn broken() -> Tool {
    let fails = |_: Value| std::future::ready(Err(ToolFailure::new("it is broken")));
    Tool::simple("broken", "Breaks.", json!({"type": "object"}), fails).with_effect(Effect::Pure)
}

/// One tool of each kind.
pub(crate) fn all(world: &World) -> Vec<Tool> {
    vec![
        working("pure", Effect::Pure, world),
        working("idempotent", Effect::Idempotent, world),
        working("effect", Effect::Effect, world),
        reconcilable(world),
        approved(world),
        Tool::external("external", "Is run elsewhere.", json!({"type": "object"})),
        broken(),
    ]
}
