//! What tenants store, and how much they may.

use crate::limit::{LimitKind, LimitReached};
use crate::store::TenantId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use timeline::{Command, ItemType, NewItem, Trigger};

/// What a tenant has in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of threads.
    pub threads: u64,
    /// The size of all events, objects and contents, in bytes. A content that several objects share counts once.
    pub bytes: u64,
    /// The number of objects that have a content.
    pub files: u64,
}

/// How much a tenant may have in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// Maximum number of threads.
    pub threads: u64,
    /// Maximum size of all events, objects and contents, in bytes.
    pub bytes: u64,
    /// Maximum number of objects that have a content.
    pub files: u64,
}

impl Default for StorageLimits {
    /// No limits.
    fn default() -> Self {
        Self {
            threads: u64::MAX,
            bytes: u64::MAX,
            files: u64::MAX,
        }
    }
}

/// The names of a store's limits in the configuration, and when a refused request may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Names {
    threads: &'static str,
    bytes: &'static str,
    files: &'static str,
    kind: LimitKind,
}

const DURABLE: Names = Names {
    threads: "tenant.threads",
    bytes: "tenant.stored_bytes",
    files: "tenant.files",
    kind: LimitKind::Storage,
};

// What is in memory goes when its run ends.
const EPHEMERAL: Names = Names {
    threads: "tenant.ephemeral_threads",
    bytes: "tenant.ephemeral_bytes",
    files: "tenant.ephemeral_bytes",
    kind: LimitKind::Concurrency,
};

/// The storage limits of all tenants. Cloning shares them: a store obeys limits that are replaced while it is open.
#[derive(Clone, Debug)]
pub struct Quotas {
    names: Names,
    limits: Arc<RwLock<Limits>>,
    refusals: Arc<Mutex<Refusals>>,
}

/// How many requests of each tenant each limit has refused, by the limit's name.
pub type Refusals = BTreeMap<(TenantId, &'static str), u64>;

#[derive(Debug, Default)]
struct Limits {
    default: StorageLimits,
    tenants: BTreeMap<TenantId, StorageLimits>,
}

impl Default for Quotas {
    /// No limits.
    fn default() -> Self {
        Self {
            names: DURABLE,
            limits: Arc::default(),
            refusals: Arc::default(),
        }
    }
}

impl Quotas {
    /// The limits of a store in memory, whose content is deleted when the runs on it end.
    pub fn ephemeral() -> Self {
        Self {
            names: EPHEMERAL,
            ..Self::default()
        }
    }

    /// Replaces all limits. `default` is that of the tenants that are not in `tenants`.
    pub fn replace(&self, default: StorageLimits, tenants: BTreeMap<TenantId, StorageLimits>) {
        let mut limits = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        *limits = Limits { default, tenants };
    }

    /// The limits of one tenant.
    pub fn of(&self, tenant: &TenantId) -> StorageLimits {
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let own = limits.tenants.get(tenant);
        own.copied().unwrap_or(limits.default)
    }

    /// Refuses a thread with events of this size.
    ///
    /// # Errors
    ///
    /// [`LimitReached`] if the tenant has as many threads as it may, or too little space.
    pub fn check_thread(
        &self,
        tenant: &TenantId,
        usage: Usage,
        bytes: u64,
    ) -> Result<(), LimitReached> {
        let max = self.of(tenant).threads;
        if usage.threads >= max {
            return Err(self.reached(tenant, self.names.threads, max));
        }
        self.check_bytes(tenant, usage, bytes)
    }

    /// Refuses content of this size.
    ///
    /// # Errors
    ///
    /// [`LimitReached`] if the tenant has too little space.
    pub fn check_bytes(
        &self,
        tenant: &TenantId,
        usage: Usage,
        bytes: u64,
    ) -> Result<(), LimitReached> {
        let max = self.of(tenant).bytes;
        if usage.bytes.saturating_add(bytes) > max {
            return Err(self.reached(tenant, self.names.bytes, max));
        }
        Ok(())
    }

    /// Refuses one more object with a content.
    ///
    /// # Errors
    ///
    /// [`LimitReached`] if the tenant has as many as it may.
    pub fn check_file(&self, tenant: &TenantId, usage: Usage) -> Result<(), LimitReached> {
        let max = self.of(tenant).files;
        if usage.files >= max {
            return Err(self.reached(tenant, self.names.files, max));
        }
        Ok(())
    }

    /// How many requests were refused.
    pub fn refusals(&self) -> Refusals {
        let refusals = self.refusals.lock();
        refusals.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn reached(&self, tenant: &TenantId, name: &'static str, max: u64) -> LimitReached {
        let refusals = self.refusals.lock();
        let mut refusals = refusals.unwrap_or_else(PoisonError::into_inner);
        *refusals.entry((tenant.clone(), name)).or_default() += 1;
        let kind = self.names.kind;
        LimitReached { name, max, kind }
    }
}

/// Whether events are refused once their tenant has stored as much as it may. Determined by the commands that
/// make them.
///
/// New messages and the output of running steps are refused. The end of a run, answers that a run waits for, and
/// removals are not: with them a run ends and space is freed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    says: bool,
    adds: bool,
    ends: bool,
}

impl Growth {
    /// Takes one more command into account.
    pub(crate) fn note(&mut self, command: &Command) {
        match command {
            Command::Record { item }
            | Command::Enqueue { item, .. }
            | Command::Start {
                trigger: Trigger::New(item),
                ..
            } => self.note_item(item),
            Command::Emit { .. }
            | Command::StartTool { .. }
            | Command::Respond { .. }
            | Command::PutPart { .. }
            | Command::AddPart { .. }
            | Command::Note { .. }
            | Command::CompleteStep { .. }
            | Command::ImportStep { .. }
            | Command::Update { .. } => self.adds = true,
            Command::End { .. } | Command::Close => self.ends = true,
            Command::Create { .. }
            | Command::Start { .. }
            | Command::ResetStep
            | Command::Remove { .. }
            | Command::Resume
            | Command::Park
            | Command::Reopen => {}
        }
    }

    fn note_item(&mut self, item: &NewItem) {
        match item.item_type {
            ItemType::Message => self.says = true,
            ItemType::ItemReference => self.adds = true,
            ItemType::ActionExecute | ItemType::ActionResult => {}
        }
    }

    /// Whether the tenant's limit of stored bytes applies.
    pub(crate) fn is_limited(self) -> bool {
        self.says || (self.adds && !self.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Ending, Interruption};

    fn is_limited(commands: &[&Command]) -> bool {
        let mut growth = Growth::default();
        for command in commands {
            growth.note(command);
        }
        growth.is_limited()
    }

    #[test]
    fn messages_and_steps_are_limited_and_ends_are_not() {
        let say = Command::Record {
            item: NewItem::user("a", serde_json::json!([]).into()),
        };
        let show = Command::Emit { chunks: Vec::new() };
        let why = Interruption::new(Interruption::ERROR, "");
        let end = Command::End {
            ending: Ending::Failed(why),
        };
        assert!(is_limited(&[&say]) && is_limited(&[&show]));
        assert!(!is_limited(&[&show, &end]) && !is_limited(&[&end]));
        // A message that stops a run is a message.
        assert!(is_limited(&[&end, &say]));
        assert!(!is_limited(&[&Command::Close]) && !is_limited(&[]));
    }

    #[test]
    fn a_limit_that_is_replaced_applies_at_once() {
        let quotas = Quotas::default();
        let (shared, tenant) = (quotas.clone(), TenantId::from("a"));
        let usage = Usage {
            threads: 1,
            ..Usage::default()
        };
        assert_eq!(shared.check_thread(&tenant, usage, 1), Ok(()));
        let one = StorageLimits {
            threads: 1,
            ..StorageLimits::default()
        };
        quotas.replace(StorageLimits::default(), [(tenant.clone(), one)].into());
        let refused = shared.check_thread(&tenant, usage, 1).unwrap_err();
        assert_eq!((refused.name, refused.max), ("tenant.threads", 1));
        assert_eq!(shared.check_thread(&"b".into(), usage, 1), Ok(()));
    }
}
