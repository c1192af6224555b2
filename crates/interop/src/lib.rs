//! Converters between the vocabularies of a thread, each saying what it could not carry.
