//! The durable runtime: the reaction loop, the store contract and its suite, subscriptions and recovery.
