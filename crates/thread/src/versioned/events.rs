//! Names of events that 0.0.4 changed (ruling 6).

/// The protocol's own events, before 0.0.4 and since.
pub(crate) const CANONICAL: [(&str, &str); 5] = [
    ("agent.handoff", "data-tp-agent_handoff"),
    ("thread.spawn", "data-tp-thread_spawn"),
    ("thread.merge", "data-tp-thread_merge"),
    ("thread.end", "data-tp-thread_end"),
    ("error", "data-tp-error"),
];

/// The event name since 0.0.4, if it differs from the older name.
pub(crate) fn newer(name: &str) -> Option<String> {
    let canonical = CANONICAL.iter().find(|(old, _)| *old == name);
    let telemetry = || name.strip_prefix("meta:");
    canonical
        .map(|(_, new)| (*new).to_owned())
        .or_else(|| telemetry().map(|name| format!("data-sys-{name}")))
}

/// The event name before 0.0.4, if it differs from the newer name.
pub(crate) fn older(name: &str) -> Option<String> {
    let canonical = CANONICAL.iter().find(|(_, new)| *new == name);
    let telemetry = || name.strip_prefix("data-sys-");
    canonical
        .map(|(old, _)| (*old).to_owned())
        .or_else(|| telemetry().map(|name| format!("meta:{name}")))
}

/// Whether 0.0.4 assigns a meaning to this name.
pub(crate) fn is_newer(name: &str) -> bool {
    name.starts_with("data-tp-") || name.starts_with("data-sys-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_renamed_gets_its_name_back() {
        for (old, new) in CANONICAL.into_iter().chain([("meta:x", "data-sys-x")]) {
            assert_eq!(newer(old).as_deref(), Some(new));
            assert_eq!(older(new).as_deref(), Some(old));
        }
    }

    #[test]
    fn an_applications_event_keeps_its_name() {
        for name in ["data-app-x", "data-x", "tool.grant", "data-tp-other", ""] {
            assert_eq!((newer(name), older(name)), (None, None), "{name}");
        }
    }
}
