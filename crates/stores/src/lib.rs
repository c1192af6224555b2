//! Stores of the runtime: SQLite.
