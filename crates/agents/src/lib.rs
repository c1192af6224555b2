//! Unified Agent Protocol: agents, immutable state, strategies as step functions, tools and hooks.
